// The general categories of Unicode, as runs of code points with the same category.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace fairlead::json {

struct CategoryRun {
  std::uint16_t length;   // in code points
  std::uint8_t category;  // the number of its bit in the result of categories_named()
};

// Returns the runs from U+0000 to U+10FFFF, without gaps.
std::span<const CategoryRun> category_runs();

// Returns the categories with the short or long name `name` ("L" means several), one bit each; 0 if the name
// is unknown.
std::uint32_t categories_named(std::string_view name) noexcept;

}  // namespace fairlead::json
