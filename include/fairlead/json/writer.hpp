// Writer: writes JSON text into one string. It inserts commas and colons. Misuse, such as a value where a key
// is expected, is a programming error and asserts.
//
// Example:
//   json::Writer writer;
//   writer.begin_object().key("name").string("x").key("n").integer(3).end_object();
//   json::Raw object = std::move(writer).finish();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fairlead/json/raw.hpp"

namespace fairlead::json {

class Writer {
 public:
  Writer& begin_object();
  Writer& end_object();
  Writer& begin_array();
  Writer& end_array();
  Writer& key(std::string_view name);

  Writer& null();
  Writer& boolean(bool value);
  Writer& integer(std::int64_t value);
  Writer& unsigned_integer(std::uint64_t value);
  // Writes the shortest text that parses to the same double. NaN and infinity, which JSON lacks, become null.
  Writer& number(double value);
  // Writes a string with the necessary escapes. Bytes that are not UTF-8 become U+FFFD.
  Writer& string(std::string_view value);
  // Inserts JSON text unchanged. REQUIRES: `json` is valid JSON.
  Writer& raw(std::string_view json);
  Writer& raw(const Raw& json);
  // Writes `before`, then `value` as a string, then `after`; faster than writing each member of the same
  // value. REQUIRES: together they are one valid value without a raw line break.
  Writer& raw_with_string(std::string_view before, std::string_view value, std::string_view after);

  // Allocates memory for `bytes` more bytes at once.
  Writer& reserve(std::size_t bytes);

  const std::string& text() const noexcept { return out_; }
  // Returns the text and leaves the writer empty. REQUIRES: the value is complete.
  Raw finish();

 private:
  void before_value();
  Writer& begin_container(char open);
  Writer& end_container(char close);
  Writer& insert(std::string_view json, bool one_line);

  std::string out_;
  std::string open_;        // the closing brackets of the open containers, innermost last
  bool has_items_ = false;  // the innermost container is not empty
  bool after_key_ = false;
  bool one_line_ = true;  // no inserted text can contain a raw line break
};

// Appends `value` to `out` as a JSON string with quotes.
void append_string(std::string& out, std::string_view value);
// Returns `value` as a JSON string.
Raw string(std::string_view value);

}  // namespace fairlead::json
