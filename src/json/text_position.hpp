// TextPosition: where in a configuration file something is, for messages. Private to the library.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace fairlead::json {

// Both begin at 1; 0: not known. A column is a character, not a byte.
struct TextPosition {
  std::size_t line = 0;
  std::size_t column = 0;
};

TextPosition position_at(std::string_view text, std::size_t offset);

// Return the position of the key that a JSON pointer names, or else that of the innermost key around it that
// exists; nullopt if there is none, or if the text cannot be parsed. Read the whole text: for error messages
// only. `text` is JSON without comments, or TOML of an allowed depth.
std::optional<TextPosition> json_position(std::string_view text, std::string_view pointer);
std::optional<TextPosition> toml_position(std::string_view text, std::string_view pointer);

}  // namespace fairlead::json
