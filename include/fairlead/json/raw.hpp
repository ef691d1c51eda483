// Raw: JSON text that is known to be valid, held by reference count. The currency of this library:
// params, results and error data travel as Raw from the bytes that came in to the bytes that go out.
#pragma once

#include <string>
#include <string_view>

#include "fairlead/base/bytes.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/json/scanner.hpp"

namespace fairlead::json {

class Raw {
 public:
  Raw() noexcept = default;  // absent: no value at all, which is not the same as null

  // Validates and copies. The error is of kind `serialize`: it is the caller who wrote it.
  static Result<Raw> parse(std::string_view text, std::size_t max_depth = kDefaultMaxDepth);
  // The same, with empty text for absent.
  static Result<Raw> parse_optional(std::string_view text) {
    if (text.empty()) return Raw();
    return parse(text);
  }
  // For text that a scanner or a writer has already vouched for. `one_line` promises that it has no raw
  // line break; without the promise, line framing looks for itself.
  static Raw trusted(Bytes bytes, bool one_line = false) noexcept { return Raw(std::move(bytes), one_line); }
  static Raw null() noexcept { return Raw(Bytes::constant("null"), true); }

  bool absent() const noexcept { return bytes_.empty(); }
  std::string_view text() const noexcept { return bytes_.view(); }
  const Bytes& bytes() const noexcept { return bytes_; }
  bool one_line() const noexcept { return one_line_; }

 private:
  Raw(Bytes bytes, bool one_line) noexcept : bytes_(std::move(bytes)), one_line_(one_line) {}

  Bytes bytes_;
  bool one_line_ = true;
};

}  // namespace fairlead::json
