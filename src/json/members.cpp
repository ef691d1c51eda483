#include "json/members.hpp"

#include "json/walk.hpp"

namespace fairlead::json {

Members::Members(std::initializer_list<std::string_view> keys) {
  found_.reserve(keys.size());
  for (const std::string_view key : keys) found_.emplace_back(key, View());
}

Members::Members(View object, std::initializer_list<std::string_view> keys, std::size_t max) : Members(keys) {
  if (!object.is(Type::object)) return;
  std::size_t count = 0;
  walk_members(object.text(), [&](std::string_view raw_key, bool escaped, std::string_view value) {
    exceeds_max_ = count++ == max;
    if (exceeds_max_) return false;
    add(raw_key, escaped, value);
    return true;
  });
}

Members::Members(const MemberIndex& index, View object, std::initializer_list<std::string_view> keys)
    : Members(keys) {
  if (!object.is(Type::object)) return;
  index.each(object.text(), [&](std::string_view raw_key, bool escaped, std::string_view value) {
    add(raw_key, escaped, value);
    return true;
  });
}

void Members::add(std::string_view raw_key, bool escaped, std::string_view value) {
  for (auto& [key, found] : found_) {
    if (escaped ? key_equals(raw_key, escaped, key) : raw_key == key) found = View(value);
  }
}

View Members::operator[](std::string_view key) const noexcept {
  for (const auto& [name, value] : found_) {
    if (name == key) return value;
  }
  return View();
}

bool has_more_members_than(View object, std::size_t max) {
  return Members(object, {}, max).exceeds_max();
}

}  // namespace fairlead::json
