// Headers: the header fields of an HTTP message, in order. Names are case-insensitive.
//
// All fields are stored in one block of memory and found by linear search, because a message has only about a
// dozen fields and each is looked up a few times.
#pragma once

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

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
  // Allocates memory for `fields` fields whose names and values have `bytes` bytes together.
  void reserve(std::size_t fields, std::size_t bytes);
  // Removes all fields of that name and appends one.
  void set(std::string_view name, std::string_view value);
  // Removes all fields of that name.
  void erase(std::string_view name);
  // Returns the value of the first field of that name, without surrounding white space. Returns an empty
  // string if no field has that name; has() distinguishes this from an empty value.
  std::string_view get(std::string_view name) const noexcept;
  bool has(std::string_view name) const noexcept;
  std::size_t count(std::string_view name) const noexcept;
  // Returns the size in bytes of the memory that is allocated for the fields.
  std::size_t capacity() const noexcept { return block_.capacity(); }

  Iterator begin() const noexcept;
  Iterator end() const noexcept;

 private:
  struct Sizes {
    std::size_t name;
    std::size_t value;
  };

  std::string block_;  // for each field: its Sizes, then its name, then its value
};

class Headers::Iterator {
 public:
  using value_type = Field;
  using difference_type = std::ptrdiff_t;

  Iterator() = default;
  Field operator*() const noexcept {
    const Sizes size = sizes();
    const char* const name = field_ + sizeof size;
    return {std::string_view(name, size.name), std::string_view(name + size.name, size.value)};
  }
  Iterator& operator++() noexcept {
    const Sizes size = sizes();
    field_ += sizeof size + size.name + size.value;
    return *this;
  }
  Iterator operator++(int) noexcept {
    const Iterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Iterator&) const = default;

 private:
  friend class Headers;
  explicit Iterator(const char* field) noexcept : field_(field) {}
  Sizes sizes() const noexcept {
    Sizes size;
    std::memcpy(&size, field_, sizeof size);
    return size;
  }

  const char* field_ = nullptr;
};

inline Headers::Iterator Headers::begin() const noexcept {
  return Iterator(block_.data());
}
inline Headers::Iterator Headers::end() const noexcept {
  return Iterator(block_.data() + block_.size());
}

// Compares ASCII letters without regard to case. REQUIRES: a.size() == b.size().
bool equals_ignore_case_same_size(std::string_view a, std::string_view b) noexcept;
inline bool equals_ignore_case(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && equals_ignore_case_same_size(a, b);
}

}  // namespace fairlead::http
