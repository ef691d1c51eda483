// TomlDepth: measures how deep the tables and arrays of a TOML text are nested. Texts that are nested too
// deep are rejected before they are parsed, because the parser needs stack and time for each level.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace fairlead::json {

class TomlDepth {
 public:
  explicit TomlDepth(std::string_view text) noexcept : text_(text) {}

  // Returns the offset at which the nesting first exceeds `max` levels; nullopt if it never does. Each part
  // of a dotted key is a level. If the text is not valid TOML, the result is correct for the part before the
  // first error.
  std::optional<std::size_t> first_deeper_than(std::size_t max);

 private:
  // Update the depth after a character outside comments and strings, and at the end of a line.
  void process_char(char c);
  void end_line();
  // Returns the end of the comment or string that begins at `at`; `at` if none begins there.
  std::size_t end_of_comment_or_string(std::size_t at) const;
  std::size_t end_of_string(std::size_t at) const;

  std::string_view text_;
  std::vector<std::size_t> depths_before_brackets_;  // the depth outside each open bracket, outermost first
  std::size_t depth_ = 0;                            // at the current character
  std::size_t line_max_depth_ = 0;                   // maximum in the current line
  std::size_t header_depth_ = 0;                     // depth of the table that the last [header] opened
  bool line_is_blank_ = true;                        // the current line has had only white space so far
  bool line_is_header_ = false;                      // the current line is a [header]
};

}  // namespace fairlead::json
