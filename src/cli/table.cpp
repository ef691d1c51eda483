#include "cli/table.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>

#include "base/printable.hpp"
#include "cli/output.hpp"
#include "cli/terminal.hpp"

namespace fairlead::cli {

namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kMinColumn = 6;

struct CodePointRange {
  std::uint32_t first;
  std::uint32_t last;
};

constexpr std::array kWideRanges = std::to_array<CodePointRange>({
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},   {0x25fd, 0x25fe},
    {0x2614, 0x2615},   {0x2648, 0x2653},   {0x26a1, 0x26a1},   {0x26bd, 0x26be},   {0x26d4, 0x26d4},
    {0x2705, 0x2705},   {0x270a, 0x270b},   {0x2728, 0x2728},   {0x274c, 0x274c},   {0x2753, 0x2755},
    {0x2795, 0x2797},   {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},   {0x2e80, 0x303e},   {0x3041, 0x33ff},
    {0x3400, 0x4dbf},   {0x4e00, 0xa4cf},   {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},
    {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf},
    {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a}, {0x1f200, 0x1f320}, {0x1f32d, 0x1f64f}, {0x1f680, 0x1f6fc},
    {0x1f7e0, 0x1f7eb}, {0x1f90c, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
});

constexpr std::array kZeroRanges = std::to_array<CodePointRange>({
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a}, {0x064b, 0x065f},
    {0x0900, 0x0902}, {0x093a, 0x093a}, {0x093c, 0x093c}, {0x0941, 0x0948}, {0x094d, 0x094d},
    {0x0e31, 0x0e31}, {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},
    {0x200b, 0x200f}, {0x20d0, 0x20f0}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef},
});

template <std::size_t N>
bool is_in(const std::array<CodePointRange, N>& ranges, std::uint32_t value) {
  const auto it = std::ranges::lower_bound(ranges, value, {}, &CodePointRange::last);
  return it != ranges.end() && it->first <= value;
}

std::size_t width_of(std::uint32_t value) {
  if (is_in(kZeroRanges, value)) return 0;
  return is_in(kWideRanges, value) ? 2 : 1;
}

// Makes the widest of `columns` narrower until the row fits, or none of them can be narrower.
void shrink_columns(std::span<std::size_t> columns, std::size_t total, std::size_t available) {
  while (total > available && !columns.empty()) {
    const auto widest = std::ranges::max_element(columns);
    if (*widest <= kMinColumn) return;
    const std::size_t less = std::min(total - available, *widest - kMinColumn);
    // The widest column gives way until it is as wide as the next one.
    std::size_t next = kMinColumn;
    for (const std::size_t width : columns) {
      if (width < *widest) next = std::max(next, width);
    }
    const std::size_t step = std::clamp<std::size_t>(*widest - next, 1, less);
    *widest -= step;
    total -= step;
  }
}

// The first column has the names that other commands take: it is shortened last.
void shrink(std::vector<std::size_t>& widths, std::size_t available) {
  const std::size_t gaps = kGap * (widths.size() - 1);
  const auto total = [&] { return std::accumulate(widths.begin(), widths.end(), gaps); };
  shrink_columns(std::span(widths).subspan(1), total(), available);
  shrink_columns(widths, total(), available);
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    width += point.length == 0 ? 1 : width_of(point.value);
    text.remove_prefix(std::max<std::size_t>(point.length, 1));
  }
  return width;
}

std::string fitted(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::size_t used = 0;
  std::size_t end = 0;
  while (end < text.size()) {
    const CodePoint point = first_code_point(text.substr(end));
    const std::size_t more = point.length == 0 ? 1 : width_of(point.value);
    if (used + more > width - 1) break;
    used += more;
    end += std::max<std::size_t>(point.length, 1);
  }
  return std::string(text.substr(0, end)) + "…";
}

void Table::add(const std::vector<std::string>& cells) {
  std::vector<std::string> row;
  for (const std::string& cell : cells) row.push_back(printable_line(cell));
  row.resize(rows_.front().size());
  rows_.push_back(std::move(row));
}

std::vector<std::size_t> Table::natural_widths() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  return widths;
}

std::string Table::text(std::size_t width) const {
  std::vector<std::size_t> widths = natural_widths();
  if (width > 0) shrink(widths, width);
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string cell = width > 0 ? fitted(row[i], widths[i]) : row[i];
      line += cell;
      if (i + 1 < row.size()) line += std::string(widths[i] - display_width(cell) + kGap, ' ');
    }
    while (line.ends_with(' ')) line.pop_back();
    out += line + "\n";
  }
  return out;
}

void Table::print() const {
  print_text(text(stdout_is_terminal() ? terminal_width() : 0));
}

}  // namespace fairlead::cli
