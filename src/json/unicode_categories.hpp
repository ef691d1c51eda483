// The general categories of Unicode, as runs of code points of the same one.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace fairlead::json {

struct CategoryRun {
  std::uint16_t length;
  std::uint8_t category;
};

// From U+0000 on, without a gap, to U+10FFFF.
std::span<const CategoryRun> category_runs();

// A bit for each category that the (short or long) name stands for; 0 when it names none.
std::uint32_t categories_named(std::string_view name) noexcept;

}  // namespace fairlead::json
