// check_body(): what is checked of every body of a request, whatever its members mean.
#include <algorithm>
#include <string>
#include <vector>

#include "base/printable.hpp"
#include "json/config_reader.hpp"
#include "registry/json.hpp"
#include "registry/row_reader.hpp"

namespace fairlead::registry {

namespace {

// Reads a document once, with the pointer of the current value.
class BodyChecker {
 public:
  explicit BodyChecker(std::string_view text)
      : scanner_(json::Scanner::trusted(text)), may_have_nul_(text.contains("\\u0000")) {}

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
    if (may_have_nul_ && json::View(value).as_string().value_or("").contains('\0'))
      return invalid_row("the value has a NUL character", pointer_);
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
      if (names.back().contains('\0'))
        return invalid_row("the name of a member has a NUL character", pointer_);
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
  const bool may_have_nul_;
  std::string pointer_;
};

}  // namespace

Result<void> check_body(json::View body) {
  if (!body.is(json::Type::object)) return invalid_row("the document is not a JSON object", "");
  if (body.text().size() > kMaxRowBytes.value)
    return invalid_row("the document has more than " + std::string(kMaxRowBytes.name) + " (" +
                           std::to_string(kMaxRowBytes.value) + ") bytes",
                       "");
  return BodyChecker(body.text()).check(1);
}

}  // namespace fairlead::registry
