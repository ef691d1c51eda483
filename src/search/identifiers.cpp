#include "search/identifiers.hpp"

#include <cstdint>

#include "json/code_points.hpp"

namespace fairlead::search {
namespace {

bool is_upper(char c) noexcept {
  return c >= 'A' && c <= 'Z';
}
bool is_lower(char c) noexcept {
  return c >= 'a' && c <= 'z';
}
bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}
bool is_word_byte(char c) noexcept {
  return is_upper(c) || is_lower(c) || is_digit(c);
}

// Returns whether code points of this script are indexed one by one and in pairs.
bool is_unspaced_script(std::uint32_t code) noexcept {
  return (code >= 0x0e00 && code <= 0x0eff) ||  // Thai, Lao
         (code >= 0x3040 && code <= 0x30ff) ||  // Hiragana, Katakana
         (code >= 0x3400 && code <= 0x9fff) ||  // Han
         (code >= 0xac00 && code <= 0xd7a3) ||  // Hangul
         (code >= 0xf900 && code <= 0xfaff) ||  // Han
         (code >= 0xff66 && code <= 0xff9d) ||  // half-width Katakana
         (code >= 0x20000 && code <= 0x3ffff);  // Han
}

// Returns whether a new word begins at `i` within an identifier: "getUser" before U, "HTTPServer" before S,
// but not in the plural of an abbreviation ("URLs").
bool is_boundary(std::string_view word, std::size_t i) noexcept {
  if (!is_upper(word[i])) return false;
  if (!is_upper(word[i - 1])) return true;
  if (i + 1 >= word.size() || !is_lower(word[i + 1])) return false;
  return !(word[i + 1] == 's' && i + 2 == word.size());
}

void append_word(std::string_view word, std::string& out) {
  bool split = false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (i > 0 && is_boundary(word, i)) {
      out += ' ';
      split = true;
    }
    out += word[i];
  }
  if (split) (out += ' ') += word;
}

}  // namespace

PreparedText prepare_text(std::string_view text) {
  PreparedText prepared;
  prepared.words.reserve(text.size() + text.size() / 4);
  const char* p = text.data();
  const char* const end = p + text.size();
  bool in_run = false;
  while (p != end) {
    if (is_word_byte(*p)) {
      const char* const begin = p;
      while (p != end && is_word_byte(*p)) ++p;
      append_word({begin, p}, prepared.words);
      in_run = false;
      continue;
    }
    const json::DecodedCodePoint decoded = json::decode_utf8(p, end);
    const std::string_view bytes(p, decoded.length);
    p += decoded.length;
    if (is_unspaced_script(decoded.code)) {
      if (!in_run) prepared.runs.emplace_back();
      prepared.runs.back().emplace_back(bytes);
      prepared.words += ' ';
      in_run = true;
      continue;
    }
    in_run = false;
    const bool is_letter_candidate = decoded.code >= 0x80 && decoded.code != 0xfffd;
    if (is_letter_candidate) {
      prepared.words += bytes;
    } else {
      prepared.words += ' ';
    }
  }
  return prepared;
}

}  // namespace fairlead::search
