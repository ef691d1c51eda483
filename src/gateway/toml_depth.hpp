// How deep the tables and arrays of a TOML text nest, found before it is parsed: the parser needs stack and
// time for each level.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace fairlead::gateway {

class TomlDepth {
 public:
  explicit TomlDepth(std::string_view text) noexcept : text_(text) {}

  // Returns where in the text the nesting is first deeper than `max`. Each part of a dotted key is a level.
  // If the text is not TOML, the part before the first error is judged correctly.
  std::optional<std::size_t> first_beyond(std::size_t max);

 private:
  void read(char c);
  void end_line();
  // Where the comment or string at `at` ends; `at` if none begins there.
  std::size_t end_of_piece(std::size_t at) const;
  std::size_t end_of_string(std::size_t at) const;

  std::string_view text_;
  std::vector<std::size_t> open_;  // the depth before each bracket that is open
  std::size_t depth_ = 0;
  std::size_t deepest_of_line_ = 0;
  std::size_t header_ = 0;  // the depth of the table that the last [header] began
  bool line_is_blank_ = true;
  bool line_is_header_ = false;
};

}  // namespace fairlead::gateway
