// Headers: the fields of an HTTP message, in order. Names compare without regard to case.
//
// All fields are in one block of memory: a message has a dozen of them, and they are looked up a few times.
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
  // Name and value. Valid until the headers are changed or destroyed.
  using Field = std::pair<std::string_view, std::string_view>;
  class Iterator;

  Headers() = default;
  Headers(std::initializer_list<Field> fields);

  // REQUIRES: neither is a view of these headers; the same for set().
  void add(std::string_view name, std::string_view value);
  // Allocates memory for `fields` fields with `bytes` bytes of names and values together.
  void reserve(std::size_t fields, std::size_t bytes);
  // Replaces all fields of that name by one.
  void set(std::string_view name, std::string_view value);
  void erase(std::string_view name);
  // The first of that name, without white space around it; empty when there is none. See has().
  std::string_view get(std::string_view name) const noexcept;
  bool has(std::string_view name) const noexcept;
  std::size_t count(std::string_view name) const noexcept;
  // Bytes of memory that the fields occupy.
  std::size_t capacity() const noexcept { return block_.capacity(); }

  Iterator begin() const noexcept;
  Iterator end() const noexcept;

 private:
  struct Sizes {
    std::size_t name;
    std::size_t value;
  };

  std::string block_;  // for each field its Sizes, its name, its value
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

bool same_letters(std::string_view a, std::string_view b) noexcept;  // REQUIRES: of one size
inline bool same_name(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && same_letters(a, b);
}

}  // namespace fairlead::http
