#include "fairlead/json/members.hpp"

#include "json/walk.hpp"

namespace fairlead::json {

Members::Members(View object, std::initializer_list<std::string_view> keys, std::size_t most) {
  for (const std::string_view key : keys) found_.emplace_back(key, View());
  if (!object.is(Type::object)) return;
  std::string unescaped;
  std::size_t count = 0;
  walk_members(object.text(), [&](std::string_view spelled, bool escaped, std::string_view value) {
    exceeded_ = count++ == most;
    if (exceeded_) return false;
    if (escaped) unescaped = unescape(spelled);
    const std::string_view name = escaped ? std::string_view(unescaped) : spelled;
    for (auto& [key, found] : found_) {
      if (name == key) found = View(value);
    }
    return true;
  });
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
