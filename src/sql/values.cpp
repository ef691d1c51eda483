#include "sql/database.hpp"

namespace fairlead::sql {

std::int64_t integer(const Value& value) noexcept {
  return optional_integer(value).value_or(0);
}

const std::string& text(const Value& value) noexcept {
  static const std::string kEmpty;
  const auto* const found = std::get_if<std::string>(&value);
  return found ? *found : kEmpty;
}

std::optional<std::int64_t> optional_integer(const Value& value) noexcept {
  const auto* const found = std::get_if<std::int64_t>(&value);
  return found ? std::optional(*found) : std::nullopt;
}

}  // namespace fairlead::sql
