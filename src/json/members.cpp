#include "json/members.hpp"

#include "json/walk.hpp"

namespace fairlead::json {

Members::Members(std::initializer_list<std::string_view> keys) {
  found_.reserve(keys.size());
  for (const std::string_view key : keys) found_.emplace_back(key, View());
}

Members::Members(View object, std::initializer_list<std::string_view> keys, std::size_t most)
    : Members(keys) {
  if (!object.is(Type::object)) return;
  std::size_t count = 0;
  walk_members(object.text(), [&](std::string_view spelled, bool escaped, std::string_view value) {
    exceeded_ = count++ == most;
    if (exceeded_) return false;
    take(spelled, escaped, value);
    return true;
  });
}

Members::Members(const MemberIndex& index, View object, std::initializer_list<std::string_view> keys)
    : Members(keys) {
  if (!object.is(Type::object)) return;
  index.each(object.text(), [&](std::string_view spelled, bool escaped, std::string_view value) {
    take(spelled, escaped, value);
    return true;
  });
}

void Members::take(std::string_view spelled, bool escaped, std::string_view value) {
  for (auto& [key, found] : found_) {
    if (key_equals(spelled, escaped, key)) found = View(value);
  }
}

View Members::operator[](std::string_view key) const noexcept {
  for (const auto& [name, value] : found_) {
    if (name == key) return value;
  }
  return View();
}

bool has_more_members(View object, std::size_t most) {
  return Members(object, {}, most).exceeded();
}

}  // namespace fairlead::json
