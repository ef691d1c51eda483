// Headers: the fields of an HTTP message, in order. Names compare without regard to case.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fairlead::http {

class Headers {
 public:
  using Field = std::pair<std::string, std::string>;

  Headers() = default;
  Headers(std::initializer_list<Field> fields) : fields_(fields) {}

  void add(std::string name, std::string value) { fields_.emplace_back(std::move(name), std::move(value)); }
  void reserve(std::size_t fields) { fields_.reserve(fields); }
  // Replaces all fields of that name by one.
  void set(std::string name, std::string value);
  void erase(std::string_view name);
  // The first of that name, without white space around it; empty when there is none. See has().
  std::string_view get(std::string_view name) const noexcept;
  bool has(std::string_view name) const noexcept;
  std::size_t count(std::string_view name) const noexcept;

  auto begin() const noexcept { return fields_.begin(); }
  auto end() const noexcept { return fields_.end(); }
  std::size_t size() const noexcept { return fields_.size(); }

 private:
  std::vector<Field> fields_;
};

bool same_letters(std::string_view a, std::string_view b) noexcept;  // REQUIRES: of one size
inline bool same_name(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && same_letters(a, b);
}

}  // namespace fairlead::http
