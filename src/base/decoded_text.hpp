// DecodedText: text with JSON or URL escapes decoded. Maps each decoded byte back to its offset in the
// original text. Private to the layer.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead {

class DecodedText {
 public:
  // Creates a text in which nothing is decoded yet.
  explicit DecodedText(std::string_view original);

  const std::string& text() const noexcept { return text_; }
  // Returns the offset in the original text of the byte `offset` of text(). For text().size(), returns the
  // size of the original text.
  std::size_t origin(std::size_t offset) const noexcept { return origins_[offset]; }

  // Returns this text with the escapes of JSON strings decoded: \n, \", \/, \u0041, surrogate pairs.
  DecodedText without_json_escapes() const;
  // Returns this text with percent-encoding (%41) decoded, and + decoded as a space if `plus_is_space`.
  DecodedText without_percent_encoding(bool plus_is_space) const;

 private:
  DecodedText() = default;
  void append(std::string_view bytes, std::size_t origin);
  // Adds the origin of the end of the text. Called after the last append().
  void finish(const DecodedText& from) { origins_.push_back(from.origins_.back()); }
  // Appends the decoded JSON escape or the plain byte at `offset` of `from`. Returns the size of its
  // spelling in bytes.
  std::size_t append_decoded_json(const DecodedText& from, std::size_t offset);

  std::string text_;
  std::vector<std::size_t> origins_;  // one entry per byte of text_, and one for its end
};

}  // namespace fairlead
