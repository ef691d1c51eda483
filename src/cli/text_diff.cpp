#include "cli/text_diff.hpp"

#include <algorithm>
#include <vector>

namespace fairlead::cli {

namespace {

constexpr std::size_t kContextLines = 3;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

void add_line(std::string& out, char mark, std::string_view line) {
  out += mark;
  out += line;
  if (!line.ends_with('\n')) out += "\n\\ No newline at end of file\n";
}

std::string hunk_range(std::size_t first, std::size_t count) {
  return std::to_string(count == 0 ? first : first + 1) + "," + std::to_string(count);
}

}  // namespace

std::string text_diff(std::string_view path, std::string_view before, std::string_view after) {
  if (before == after) return {};
  const std::vector<std::string_view> old_lines = lines_of(before);
  const std::vector<std::string_view> new_lines = lines_of(after);
  const std::size_t shorter = std::min(old_lines.size(), new_lines.size());
  std::size_t same = 0;
  while (same < shorter && old_lines[same] == new_lines[same]) ++same;
  std::size_t tail = 0;
  while (tail < shorter - same &&
         old_lines[old_lines.size() - 1 - tail] == new_lines[new_lines.size() - 1 - tail])
    ++tail;
  const std::size_t begin = same - std::min(same, kContextLines);
  const std::size_t after_tail = std::min(tail, kContextLines);
  const std::size_t old_end = old_lines.size() - tail;
  const std::size_t new_end = new_lines.size() - tail;
  const std::string name(path);
  std::string out = "--- " + name + "\n+++ " + name + "\n@@ -" +
                    hunk_range(begin, old_end + after_tail - begin) + " +" +
                    hunk_range(begin, new_end + after_tail - begin) + " @@\n";
  for (std::size_t i = begin; i < same; ++i) add_line(out, ' ', old_lines[i]);
  for (std::size_t i = same; i < old_end; ++i) add_line(out, '-', old_lines[i]);
  for (std::size_t i = same; i < new_end; ++i) add_line(out, '+', new_lines[i]);
  for (std::size_t i = old_end; i < old_end + after_tail; ++i) add_line(out, ' ', old_lines[i]);
  return out;
}

}  // namespace fairlead::cli
