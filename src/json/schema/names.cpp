#include "json/schema/names.hpp"

#include <array>

#include "fairlead/json/writer.hpp"

namespace fairlead::json::schema {

namespace {

constexpr std::size_t kShown = 80;  // bytes of a value in a message

// Not within a code point.
std::string_view beginning(std::string_view text) {
  std::size_t size = kShown;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  return text.substr(0, size);
}

}  // namespace

std::string_view name_of(Type type) noexcept {
  constexpr std::array<std::string_view, 6> kNames = {"null",   "boolean", "number",
                                                      "string", "array",   "object"};
  return kNames[static_cast<std::size_t>(type)];
}

std::string quoted(std::string_view text) {
  std::string out;
  append_string(out, text.size() <= kShown ? text : std::string(beginning(text)) + "…");
  return out;
}

std::string shortened(std::string_view json) {
  return json.size() <= kShown ? std::string(json) : std::string(beginning(json)) + "…";
}

std::string limit_message(std::string_view what, std::size_t limit) {
  return std::string(what) + " (" + std::to_string(limit) + ")";
}

}  // namespace fairlead::json::schema
