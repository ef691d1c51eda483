// CharSet: a set of Unicode code points, stored as ranges. The compiled form of a character class of a Regex.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace fairlead::json {

inline constexpr std::uint32_t kMaxCodePoint = 0x10ffff;

class CharSet {
 public:
  // Adds all code points with the property `name`: a general category such as "Lu", "Letter" or "gc=Nd", or
  // "Any" or "ASCII". Returns false if the property is unknown.
  bool add_property(std::string_view name);
  void add(std::uint32_t first, std::uint32_t last) { ranges_.push_back({first, last}); }
  void add(const CharSet& other);

  // Sorts and merges the ranges. Called after the last add() and before the first has().
  void seal();
  CharSet complement() const;  // REQUIRES: sealed
  std::size_t range_count() const noexcept { return ranges_.size(); }

  bool has(std::uint32_t code) const noexcept {
    return code < 128 ? (ascii_[code >> 6] >> (code & 63) & 1) != 0 : has_beyond_ascii(code);
  }

 private:
  struct Range {
    std::uint32_t first;
    std::uint32_t last;
  };

  bool has_beyond_ascii(std::uint32_t code) const noexcept;

  std::vector<Range> ranges_;
  std::array<std::uint64_t, 2> ascii_{};  // a bit for each ASCII character: whether it is in the set
};

}  // namespace fairlead::json
