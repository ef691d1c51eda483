// Raw: reference-counted JSON text that is known to be valid. Params, results and error data are passed
// through the library as Raw, from the bytes received to the bytes sent, without being parsed into a tree.
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

  // Validates and copies `text`. Fails with kind `serialize`, not `parse`: the caller made the text, it was
  // not received.
  static Result<Raw> parse(std::string_view text, std::size_t max_depth = kDefaultMaxDepth);
  // The same, but returns an absent value if `text` is empty.
  static Result<Raw> parse_optional(std::string_view text) {
    if (text.empty()) return Raw();
    return parse(text);
  }
  // Adopts `bytes` without validating them. REQUIRES: a Scanner has validated or a Writer has written them.
  // If `one_line` is true, the text has no raw line break; otherwise line framing searches the text for one.
  static Raw trusted(Bytes bytes, bool one_line = false) noexcept { return Raw(std::move(bytes), one_line); }
  static Raw null() noexcept { return Raw(Bytes::constant("null"), true); }

  bool absent() const noexcept { return bytes_.empty(); }
  std::string_view text() const noexcept { return bytes_.view(); }
  const Bytes& bytes() const noexcept { return bytes_; }
  bool is_one_line() const noexcept { return one_line_; }

 private:
  Raw(Bytes bytes, bool one_line) noexcept : bytes_(std::move(bytes)), one_line_(one_line) {}

  Bytes bytes_;
  bool one_line_ = true;
};

}  // namespace fairlead::json
