// Writer: builds JSON text front to back into one string. Commas and colons are its own business;
// misuse (a value where a key is due) is a programming error and asserts.
//
//   json::Writer w;
//   w.begin_object().key("name").string("x").key("n").integer(3).end_object();
//   json::Raw raw = std::move(w).finish();
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
  // The shortest spelling that reads back the same. JSON has no NaN and no infinity: those become null.
  Writer& number(double value);
  // Escapes what must be escaped; bytes that are not UTF-8 become U+FFFD.
  Writer& string(std::string_view value);
  // Valid JSON, inserted untouched.
  Writer& raw(std::string_view json);
  Writer& raw(const Raw& json);

  const std::string& text() const noexcept { return out_; }
  // Hands the text over; the writer is empty afterwards.
  Raw finish();

 private:
  void before_value();
  Writer& begin_container(char open);
  Writer& end_container(char close);
  Writer& insert(std::string_view json, bool one_line);

  std::string out_;
  std::string open_;        // the closing brackets still due, innermost last
  bool has_items_ = false;  // the innermost container has some
  bool after_key_ = false;
  bool one_line_ = true;  // nothing inserted could contain a raw line break
};

// Appends `value` to `out` as a JSON string with its quotes.
void append_string(std::string& out, std::string_view value);
Raw string(std::string_view value);

}  // namespace fairlead::json
