// Table: rows in aligned columns. On a terminal, cells are shortened so that each row fits into one line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fairlead::cli {

// Returns how many columns of a terminal the text takes: 2 for wide characters, 0 for combining ones.
std::size_t display_width(std::string_view text);
// Returns the text, or as much of it as fits into `width` columns with "…" at its end.
std::string fitted(std::string_view text, std::size_t width);

class Table {
 public:
  explicit Table(std::vector<std::string> headers) : rows_{std::move(headers)} {}

  // Control characters are shown as escapes.
  void add(const std::vector<std::string>& cells);
  bool empty() const noexcept { return rows_.size() == 1; }
  // Returns the lines. `width` is that of the terminal; 0: no limit.
  std::string text(std::size_t width) const;
  // Prints the table to stdout.
  void print() const;

 private:
  std::vector<std::size_t> natural_widths() const;

  std::vector<std::vector<std::string>> rows_;  // the first has the headers
};

}  // namespace fairlead::cli
