#include "json/schema/message_text.hpp"

#include <array>

#include "fairlead/json/writer.hpp"

namespace fairlead::json::schema {

namespace {

constexpr std::size_t kMaxShownBytes = 80;  // bytes of a value in a message

// Returns at most kMaxShownBytes bytes and does not split a code point. REQUIRES: `text` is longer.
std::string_view shown_prefix(std::string_view text) {
  std::size_t size = kMaxShownBytes;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  return text.substr(0, size);
}

}  // namespace

std::string_view type_name(Type type) noexcept {
  constexpr std::array<std::string_view, 6> kNames = {"null",   "boolean", "number",
                                                      "string", "array",   "object"};
  return kNames[static_cast<std::size_t>(type)];
}

std::string quoted(std::string_view text) {
  std::string out;
  append_string(out, text.size() <= kMaxShownBytes ? text : std::string(shown_prefix(text)) + "…");
  return out;
}

std::string shortened_json(std::string_view json) {
  return json.size() <= kMaxShownBytes ? std::string(json) : std::string(shown_prefix(json)) + "…";
}

std::string limit_message(std::string_view problem, std::size_t limit) {
  return std::string(problem) + " (" + std::to_string(limit) + ")";
}

}  // namespace fairlead::json::schema
