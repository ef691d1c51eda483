// Headers: the header fields of an HTTP message, in order. Names are case-insensitive.
//
// The text of all fields is stored in one block of memory. Fields are found by linear search, because a
// message has only about a dozen and each is looked up a few times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fairlead/base/block_cache.hpp"

namespace fairlead::http {

class Headers {
 public:
  // The name and the value of a field. Valid until the headers are changed or destroyed.
  using Field = std::pair<std::string_view, std::string_view>;
  class Iterator;

  Headers() = default;
  Headers(std::initializer_list<Field> fields);

  // Appends a field. REQUIRES: `name` and `value` do not point into these headers. The same holds for set().
  void add(std::string_view name, std::string_view value);
  // Removes all fields, and copies `head`, the text in which add_parsed() finds the fields that follow.
  void assign_text(std::string_view head, std::size_t expected_fields);
  // Returns the text that was passed to assign_text(). REQUIRES: no field was added or changed otherwise.
  std::string_view text() const noexcept { return text_; }
  // Replaces the characters at `offset` of text(), without changing the sizes of fields.
  void overwrite_text(std::size_t offset, std::string_view replacement) noexcept {
    replacement.copy(text_.data() + offset, replacement.size());
  }
  // Appends a field without copying it. REQUIRES: `name` and `value` are parts of `head`, which is the text
  // that was passed to assign_text(), and no other field has been added since.
  void add_parsed(std::string_view head, std::string_view name, std::string_view value) {
    const auto offset = [&](std::string_view part) {
      return static_cast<std::uint32_t>(part.data() - head.data());
    };
    entries_.push_back(Entry{offset(name), static_cast<std::uint32_t>(name.size()), offset(value),
                             static_cast<std::uint32_t>(value.size())});
  }
  // Removes all fields of that name and appends one.
  void set(std::string_view name, std::string_view value);
  // Removes all fields of that name.
  void erase(std::string_view name);
  // Returns the value of the first field of that name, without surrounding white space. Returns an empty
  // string if no field has that name; has() distinguishes this from an empty value.
  std::string_view get(std::string_view name) const noexcept;
  struct Lookup {
    std::size_t count = 0;   // fields with that name
    std::string_view value;  // of the first of them, as get() returns it
  };
  Lookup lookup(std::string_view name) const noexcept;
  bool has(std::string_view name) const noexcept;
  std::size_t count(std::string_view name) const noexcept;
  // Returns the size in bytes of the memory that is allocated for the fields.
  std::size_t capacity() const noexcept { return text_.capacity() + entries_.capacity() * sizeof(Entry); }

  Iterator begin() const noexcept;
  Iterator end() const noexcept;

 private:
  // Offsets in text_, and sizes.
  struct Entry {
    std::uint32_t name;
    std::uint32_t name_size;
    std::uint32_t value;
    std::uint32_t value_size;
  };
  std::string_view name_of(const Entry& entry) const noexcept {
    return std::string_view(text_.data() + entry.name, entry.name_size);
  }
  std::string_view value_of(const Entry& entry) const noexcept {
    return std::string_view(text_.data() + entry.value, entry.value_size);
  }

  // Returns the first field of that name from `from` on; null if there is none.
  const Entry* find(std::string_view name, const Entry* from) const noexcept;

  std::basic_string<char, std::char_traits<char>, BlockAllocator<char>> text_;
  std::vector<Entry, BlockAllocator<Entry>> entries_;
};

class Headers::Iterator {
 public:
  using value_type = Field;
  using difference_type = std::ptrdiff_t;

  Iterator() = default;
  Field operator*() const noexcept { return {headers_->name_of(*entry_), headers_->value_of(*entry_)}; }
  Iterator& operator++() noexcept {
    ++entry_;
    return *this;
  }
  Iterator operator++(int) noexcept {
    const Iterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Iterator& other) const noexcept { return entry_ == other.entry_; }

 private:
  friend class Headers;
  Iterator(const Headers& headers, const Entry* entry) noexcept : headers_(&headers), entry_(entry) {}

  const Headers* headers_ = nullptr;
  const Entry* entry_ = nullptr;
};

inline Headers::Iterator Headers::begin() const noexcept {
  return Iterator(*this, entries_.data());
}
inline Headers::Iterator Headers::end() const noexcept {
  return Iterator(*this, entries_.data() + entries_.size());
}

// Compares ASCII letters without regard to case. REQUIRES: a.size() == b.size().
bool equals_ignore_case_same_size(std::string_view a, std::string_view b) noexcept;
inline bool equals_ignore_case(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && equals_ignore_case_same_size(a, b);
}

}  // namespace fairlead::http
