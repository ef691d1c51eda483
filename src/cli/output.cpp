#include "cli/output.hpp"

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "cli/terminal.hpp"

namespace fairlead::cli {

void print_text(std::string_view text) {
  if (stdout_is_terminal()) {
    std::cout << printable_text(text) << std::flush;
  } else {
    std::cout << text << std::flush;
  }
}

void print_text_line(std::string_view text) {
  print_text(text);
  std::cout << std::endl;
}

void print_json(std::string_view json) {
  if (stdout_is_terminal()) {
    std::cout << printable_json(json) << std::endl;
  } else {
    std::cout << json << std::endl;
  }
}

void print_json_array(const std::vector<json::Raw>& entries) {
  std::string text = "[";
  for (const json::Raw& entry : entries) {
    if (text.size() > 1) text += ",\n ";
    text += entry.text();
  }
  print_json(text + "]");
}

std::string summary(std::string_view description) {
  constexpr std::size_t kWidth = 90;
  const std::string_view line = description.substr(0, description.find('\n'));
  if (line.size() <= kWidth) return std::string(line);
  std::size_t cut = kWidth - 3;
  while (cut > 0 && (line[cut] & 0xc0) == 0x80) --cut;  // does not split a UTF-8 character
  return std::string(line.substr(0, cut)) + "...";
}

void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::vector<std::string>> cells = rows;
  std::vector<std::size_t> widths;
  for (auto& row : cells) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = printable_line(row[i]);
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  for (const auto& row : cells) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line += std::string(widths[i] - row[i].size() + 2, ' ');
    }
    std::puts(line.c_str());
  }
}

}  // namespace fairlead::cli
