#include "fairlead/http/headers.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/comma_list.hpp"

namespace fairlead::http {

namespace {

char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::uint64_t eight_of(const char* text) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, text, sizeof word);
  return word;
}

// Eight characters in lower case. A byte of each sum below has its highest bit set if the character, without
// its own highest bit, is at least 'A', or beyond 'Z'.
std::uint64_t lower(std::uint64_t word) noexcept {
  constexpr std::uint64_t kEach = 0x0101010101010101;
  const std::uint64_t low = word & (0x7f * kEach);
  const std::uint64_t from_a = low + (0x80 - 'A') * kEach;
  const std::uint64_t beyond_z = low + (0x7f - 'Z') * kEach;
  const std::uint64_t upper = from_a & ~beyond_z & ~word & (0x80 * kEach);
  return word | (upper >> 2);  // 0x80 becomes 0x20, which is what lower case adds
}

}  // namespace

bool same_letters(std::string_view a, std::string_view b) noexcept {
  std::size_t i = 0;
  for (; i + 8 <= a.size(); i += 8) {
    const std::uint64_t one = eight_of(a.data() + i);
    const std::uint64_t other = eight_of(b.data() + i);
    if (one != other && lower(one) != lower(other)) return false;
  }
  for (; i < a.size(); ++i) {
    if (a[i] != b[i] && lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

Headers::Headers(std::initializer_list<Field> fields) {
  for (const auto& [name, value] : fields) add(name, value);
}

void Headers::add(std::string_view name, std::string_view value) {
  const Sizes sizes{name.size(), value.size()};
  char bytes[sizeof sizes];
  std::memcpy(bytes, &sizes, sizeof sizes);
  block_.append(bytes, sizeof bytes).append(name).append(value);
}

void Headers::reserve(std::size_t fields, std::size_t bytes) {
  block_.reserve(fields * sizeof(Sizes) + bytes);
}

void Headers::set(std::string_view name, std::string_view value) {
  erase(name);
  add(name, value);
}

void Headers::erase(std::string_view name) {
  if (!has(name)) return;
  const Headers before = std::move(*this);
  block_.clear();
  for (const auto& [one, value] : before) {
    if (!same_name(one, name)) add(one, value);
  }
}

std::string_view Headers::get(std::string_view name) const noexcept {
  for (const auto& [one, value] : *this) {
    if (same_name(one, name)) return without_blanks(value);
  }
  return {};
}

bool Headers::has(std::string_view name) const noexcept {
  return std::ranges::any_of(*this, [&](const Field& field) { return same_name(field.first, name); });
}

std::size_t Headers::count(std::string_view name) const noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(*this, [&](const Field& field) { return same_name(field.first, name); }));
}

}  // namespace fairlead::http
