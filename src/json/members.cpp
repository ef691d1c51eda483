#include "fairlead/json/members.hpp"

#include "json/walk.hpp"

namespace fairlead::json {

Members::Members(View object, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) found_.emplace_back(key, View());
  if (!object.is(Type::object)) return;
  std::string unescaped;
  walk_members(object.text(), [&](std::string_view spelled, bool escaped, std::string_view value) {
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

}  // namespace fairlead::json
