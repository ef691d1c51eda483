// check_body(): what is checked of every body of a request, whatever its members mean.
#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "base/printable.hpp"
#include "json/config_reader.hpp"
#include "registry/json.hpp"
#include "registry/row_reader.hpp"

namespace fairlead::registry {

namespace {

std::optional<unsigned> code_unit_at(std::string_view text, std::size_t at) {
  unsigned unit = 0;
  if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return std::nullopt;
  std::from_chars(text.data() + at + 2, text.data() + at + 6, unit, 16);
  return unit;
}

// Returns whether a string of valid JSON has half of a surrogate pair, which no text in UTF-8 can have.
bool has_lone_surrogate(std::string_view text) {
  for (std::size_t at = text.find('\\'); at != std::string_view::npos; at = text.find('\\', at + 2)) {
    const unsigned unit = code_unit_at(text, at).value_or(0);
    if (unit < 0xd800 || unit > 0xdfff) continue;
    const unsigned next = code_unit_at(text, at + 6).value_or(0);
    if (unit > 0xdbff || next < 0xdc00 || next > 0xdfff) return true;
    at += 6;
  }
  return false;
}

std::optional<std::string> text_problem(std::string_view text) {
  if (!text.contains("\\u")) return std::nullopt;
  if (has_lone_surrogate(text)) return "has half of a surrogate pair";
  return json::unescape(text).contains('\0') ? std::optional<std::string>("has a NUL character")
                                             : std::nullopt;
}

// Reads a document once, with the pointer of the current value.
class BodyChecker {
 public:
  explicit BodyChecker(std::string_view text) : scanner_(json::Scanner::trusted(text)) {}

  Result<void> check(std::size_t depth) {
    const std::optional<json::Type> type = scanner_.peek();
    const bool container = type == json::Type::object || type == json::Type::array;
    if (container && depth > kMaxRowDepth.value)
      return invalid_row("the document is nested more than " + std::string(kMaxRowDepth.name) + " (" +
                             std::to_string(kMaxRowDepth.value) + ") levels deep",
                         pointer_);
    if (type == json::Type::object) return check_object(depth);
    if (type == json::Type::array) return check_array(depth);
    std::string_view value;
    scanner_.value(value);
    if (type != json::Type::string) return {};
    if (const auto problem = text_problem(value.substr(1, value.size() - 2)))
      return invalid_row("the value " + *problem, pointer_);
    return {};
  }

 private:
  Result<void> check_object(std::size_t depth) {
    const std::size_t length = pointer_.size();
    std::vector<std::string> names;
    std::string_view key;
    bool escaped = false;
    scanner_.begin_object();
    while (scanner_.next_member(key, escaped)) {
      names.push_back(escaped ? json::unescape(key) : std::string(key));
      json::append_to_pointer(pointer_, names.back());
      if (const auto problem = escaped ? text_problem(key) : std::nullopt)
        return invalid_row("the name of a member " + *problem, pointer_);
      if (Result<void> checked = check(depth + 1); !checked) return checked;
      pointer_.resize(length);
    }
    return check_names(std::move(names));
  }

  Result<void> check_names(std::vector<std::string> names) {
    std::ranges::sort(names);
    const auto repeated = std::ranges::adjacent_find(names);
    if (repeated == names.end()) return {};
    json::append_to_pointer(pointer_, *repeated);
    return invalid_row("the member `" + shortened(*repeated, 100) + "` is repeated", pointer_);
  }

  Result<void> check_array(std::size_t depth) {
    const std::size_t length = pointer_.size();
    scanner_.begin_array();
    for (std::size_t i = 0; scanner_.next_element(); ++i) {
      json::append_to_pointer(pointer_, std::to_string(i));
      if (Result<void> checked = check(depth + 1); !checked) return checked;
      pointer_.resize(length);
    }
    return {};
  }

  json::Scanner scanner_;
  std::string pointer_;
};

// The pointer names the largest member, which most likely is the mistake.
Error too_large(json::View body) {
  std::size_t largest = 0;
  std::string pointer;
  body.each_member([&](std::string_view key, bool escaped, json::View value) {
    const std::size_t size = key.size() + value.text().size();
    if (size <= largest) return true;
    largest = size;
    pointer.clear();
    json::append_to_pointer(pointer, escaped ? json::unescape(key) : std::string(key));
    return true;
  });
  return invalid_row("the document has more than " + std::string(kMaxRowBytes.name) + " (" +
                         std::to_string(kMaxRowBytes.value) + ") bytes",
                     std::move(pointer));
}

}  // namespace

Result<void> check_body(json::View body) {
  if (!body.is(json::Type::object)) return invalid_row("the document is not a JSON object", "");
  if (body.text().size() > kMaxRowBytes.value) return too_large(body);
  return BodyChecker(body.text()).check(1);
}

}  // namespace fairlead::registry
