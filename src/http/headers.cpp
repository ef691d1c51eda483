#include "fairlead/http/headers.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/comma_list.hpp"

namespace fairlead::http {

namespace {

// What stands in the block before a field.
struct Sizes {
  std::size_t name;
  std::size_t value;
};

Sizes sizes_at(const char* field) noexcept {
  Sizes sizes;
  std::memcpy(&sizes, field, sizeof sizes);
  return sizes;
}

char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Eight characters at a time. A byte of each sum below has its highest bit set if the character, without its
// own highest bit, is at least 'A', or beyond 'Z'.
std::uint64_t lower_of_eight(const char* text) noexcept {
  constexpr std::uint64_t kEach = 0x0101010101010101;
  std::uint64_t word = 0;
  std::memcpy(&word, text, sizeof word);
  const std::uint64_t low = word & (0x7f * kEach);
  const std::uint64_t from_a = low + (0x80 - 'A') * kEach;
  const std::uint64_t beyond_z = low + (0x7f - 'Z') * kEach;
  const std::uint64_t upper = from_a & ~beyond_z & ~word & (0x80 * kEach);
  return word | (upper >> 2);  // 0x80 becomes 0x20, which is what lower case adds
}

}  // namespace

bool same_letters(std::string_view a, std::string_view b) noexcept {
  if (a.size() < 8)
    return std::ranges::equal(a, b, [](char one, char other) { return lower(one) == lower(other); });
  const std::size_t last = a.size() - 8;  // the last eight overlap those before
  for (std::size_t i = 0; i < last; i += 8) {
    if (lower_of_eight(a.data() + i) != lower_of_eight(b.data() + i)) return false;
  }
  return lower_of_eight(a.data() + last) == lower_of_eight(b.data() + last);
}

Headers::Headers(std::initializer_list<Field> fields) {
  for (const auto& [name, value] : fields) add(name, value);
}

void Headers::add(std::string_view name, std::string_view value) {
  const Sizes sizes{name.size(), value.size()};
  const std::size_t begin = block_.size();
  const std::size_t end = begin + sizeof sizes + name.size() + value.size();
  if (end > block_.capacity()) block_.reserve(std::max(end, 2 * block_.capacity()));
  block_.resize_and_overwrite(end, [&](char* block, std::size_t size) {
    char* at = block + begin;
    std::memcpy(at, &sizes, sizeof sizes);
    at = std::ranges::copy(name, at + sizeof sizes).out;
    std::ranges::copy(value, at);
    return size;
  });
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

Headers::Field Headers::Iterator::operator*() const noexcept {
  const Sizes sizes = sizes_at(field_);
  const char* const name = field_ + sizeof sizes;
  return {std::string_view(name, sizes.name), std::string_view(name + sizes.name, sizes.value)};
}

Headers::Iterator& Headers::Iterator::operator++() noexcept {
  const Sizes sizes = sizes_at(field_);
  field_ += sizeof sizes + sizes.name + sizes.value;
  return *this;
}

}  // namespace fairlead::http
