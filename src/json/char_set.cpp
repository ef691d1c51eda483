#include "json/char_set.hpp"

#include <algorithm>

#include "json/unicode_categories.hpp"

namespace fairlead::json {

bool CharSet::add_property(std::string_view name) {
  if (name == "Any") return add(0, kMaxCodePoint), true;
  if (name == "ASCII") return add(0, 0x7f), true;
  for (const std::string_view prefix : {"General_Category=", "gc="}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  const std::uint32_t wanted = categories_named(name);
  if (wanted == 0) return false;
  std::uint32_t from = 0;
  for (const CategoryRun& run : category_runs()) {
    if ((wanted >> run.category & 1) != 0) add(from, from + run.length - 1);
    from += run.length;
  }
  return true;
}

void CharSet::add(const CharSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
}

void CharSet::seal() {
  std::ranges::sort(ranges_, {}, &Range::first);
  std::size_t kept = 0;
  for (const Range range : ranges_) {
    if (kept > 0 && range.first <= ranges_[kept - 1].last + 1) {
      ranges_[kept - 1].last = std::max(ranges_[kept - 1].last, range.last);
    } else {
      ranges_[kept++] = range;
    }
  }
  ranges_.resize(kept);
  ascii_ = {};
  for (const Range range : ranges_) {
    for (std::uint32_t c = range.first; c <= std::min(range.last, 127u); ++c)
      ascii_[c >> 6] |= std::uint64_t{1} << (c & 63);
  }
}

CharSet CharSet::complement() const {
  CharSet others;
  std::uint32_t from = 0;
  for (const Range range : ranges_) {
    if (range.first > from) others.add(from, range.first - 1);
    from = range.last + 1;
  }
  if (from <= kMaxCodePoint) others.add(from, kMaxCodePoint);
  others.seal();
  return others;
}

bool CharSet::has_beyond_ascii(std::uint32_t code) const noexcept {
  const auto after = std::ranges::upper_bound(ranges_, code, {}, &Range::first);
  return after != ranges_.begin() && code <= std::prev(after)->last;
}

}  // namespace fairlead::json
