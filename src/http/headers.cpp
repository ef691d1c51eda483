#include "fairlead/http/headers.hpp"

#include <cstdint>
#include <cstring>

#include "base/comma_list.hpp"
#include "base/lower_case.hpp"

namespace fairlead::http {

namespace {

std::uint64_t load_word(const char* text) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, text, sizeof word);
  return word;
}

// Returns eight characters in lower case. The highest bit of each byte of `from_a` is set if the low seven
// bits of the character are at least 'A'; that of each byte of `beyond_z` is set if they are greater than
// 'Z'.
std::uint64_t lower(std::uint64_t word) noexcept {
  constexpr std::uint64_t kOnePerByte = 0x0101010101010101;
  const std::uint64_t low = word & (0x7f * kOnePerByte);
  const std::uint64_t from_a = low + (0x80 - 'A') * kOnePerByte;
  const std::uint64_t beyond_z = low + (0x7f - 'Z') * kOnePerByte;
  const std::uint64_t upper = from_a & ~beyond_z & ~word & (0x80 * kOnePerByte);
  return word | (upper >> 2);  // 0x80 becomes 0x20, the difference to lower case
}

// Compares eight characters without regard to case.
bool equal_words(const char* a, const char* b) noexcept {
  const std::uint64_t word_a = load_word(a);
  const std::uint64_t word_b = load_word(b);
  return word_a == word_b || lower(word_a) == lower(word_b);
}

}  // namespace

bool equals_ignore_case_same_size(std::string_view a, std::string_view b) noexcept {
  if (a.size() >= 8) {
    for (std::size_t i = 0; i + 8 < a.size(); i += 8) {
      if (!equal_words(a.data() + i, b.data() + i)) return false;
    }
    return equal_words(a.data() + a.size() - 8, b.data() + a.size() - 8);  // overlaps the word before it
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && lower_letter(a[i]) != lower_letter(b[i])) return false;
  }
  return true;
}

Headers::Headers(std::initializer_list<Field> fields) {
  for (const auto& [name, value] : fields) add(name, value);
}

void Headers::add(std::string_view name, std::string_view value) {
  const std::size_t before = text_.size();
  text_.append(name).append(value);
  entries_.push_back(Entry{static_cast<std::uint32_t>(before), static_cast<std::uint32_t>(name.size()),
                           static_cast<std::uint32_t>(before + name.size()),
                           static_cast<std::uint32_t>(value.size())});
}

void Headers::assign_text(std::string_view head, std::size_t expected_fields) {
  entries_.clear();
  entries_.reserve(expected_fields);
  text_.assign(head);
}

void Headers::set(std::string_view name, std::string_view value) {
  erase(name);
  add(name, value);
}

void Headers::erase(std::string_view name) {
  std::erase_if(entries_, [&](const Entry& entry) { return equals_ignore_case(name_of(entry), name); });
}

// Most names differ in their size or their first character.
const Headers::Entry* Headers::find(std::string_view name, const Entry* from) const noexcept {
  const Entry* const end = entries_.data() + entries_.size();
  const char first = name.empty() ? '\0' : lower_letter(name.front());
  for (; from != end; ++from) {
    if (from->name_size != name.size()) continue;
    const char* const candidate = text_.data() + from->name;
    if (!name.empty() && lower_letter(*candidate) != first) continue;
    if (equals_ignore_case_same_size(name, std::string_view(candidate, name.size()))) return from;
  }
  return nullptr;
}

std::string_view Headers::get(std::string_view name) const noexcept {
  const Entry* const found = find(name, entries_.data());
  return found ? trim_blanks(value_of(*found)) : std::string_view();
}

bool Headers::has(std::string_view name) const noexcept {
  return find(name, entries_.data()) != nullptr;
}

std::size_t Headers::count(std::string_view name) const noexcept {
  return lookup(name).count;
}

Headers::Lookup Headers::lookup(std::string_view name) const noexcept {
  Lookup result;
  for (const Entry* found = find(name, entries_.data()); found; found = find(name, found + 1)) {
    if (result.count++ == 0) result.value = trim_blanks(value_of(*found));
  }
  return result;
}

}  // namespace fairlead::http
