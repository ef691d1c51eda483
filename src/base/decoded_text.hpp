// DecodedText: text with the escapes of JSON strings or URLs replaced by what they stand for, byte by byte
// traceable to where it came from. Private to the layer.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead {

class DecodedText {
 public:
  // Nothing is decoded yet.
  explicit DecodedText(std::string_view original);

  const std::string& text() const noexcept { return text_; }
  // Where in the original the byte at `at` came from. Of text().size(): the original's size.
  std::size_t origin(std::size_t at) const noexcept { return origins_[at]; }

  // The escapes of JSON strings: \n, \", \/, \u0041, surrogate pairs.
  DecodedText without_json_escapes() const;
  // %41, and + for a space if `plus_is_space`.
  DecodedText without_percent_encoding(bool plus_is_space) const;

 private:
  DecodedText() = default;
  void append(std::string_view bytes, std::size_t origin);
  void finish(const DecodedText& from) { origins_.push_back(from.origins_.back()); }
  // Decodes the JSON escape at `at` of `from`; returns how long it is, 1 for what is none.
  std::size_t append_json_escape(const DecodedText& from, std::size_t at);

  std::string text_;
  std::vector<std::size_t> origins_;  // by byte of text_, and one more
};

}  // namespace fairlead
