// View: looks into valid JSON without building a tree. A View is two pointers; looking up one member costs
// one pass over the object, several are found in one pass by Members, and those of a message's params or
// result are in its MemberIndex. Views do not own: keep the Raw or the string they look into.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "fairlead/json/raw.hpp"

namespace fairlead::json {

class View {
 public:
  View() noexcept = default;  // absent
  // REQUIRES: valid JSON, or empty for absent.
  explicit View(std::string_view text) noexcept;
  explicit View(const Raw& raw) noexcept : View(raw.text()) {}

  bool absent() const noexcept { return text_.empty(); }
  std::string_view text() const noexcept { return text_; }
  Type type() const noexcept { return type_of(text_); }  // REQUIRES: !absent()
  bool is(Type type) const noexcept { return !absent() && this->type() == type; }

  // Member of an object by its (unescaped) name; absent when there is none, or this is no object. Reads to
  // the end of the object even when it has found the key: of a repeated key the last value counts, as nearly
  // every other parser has it, and a reader that stopped at the first would disagree with them.
  View operator[](std::string_view key) const;
  // Element of an array.
  View operator[](std::size_t index) const;
  std::size_t size() const;  // elements or members; 0 for scalars

  // nullopt when the value is of another type or does not fit.
  std::optional<bool> as_bool() const noexcept;
  std::optional<std::int64_t> as_int() const noexcept;  // 3, 3.0 and 3e0 are all the integer 3
  std::optional<double> as_double() const noexcept;
  std::optional<std::string> as_string() const;  // escapes decoded
  // The same, but nullopt also for a string of more than `max_bytes`, which is not decoded.
  std::optional<std::string> as_string(std::size_t max_bytes) const;

  // Walks members or elements without allocating; `visit` returns false to stop.
  template <class Visit>
  void each_member(Visit&& visit) const;
  template <class Visit>
  void each_element(Visit&& visit) const;

 private:
  using MemberVisitor = bool(void* visit, std::string_view key, bool escaped, std::string_view value);
  using ElementVisitor = bool(void* visit, std::string_view value);
  void walk(MemberVisitor* visitor, void* visit) const;
  void walk(ElementVisitor* visitor, void* visit) const;

  std::string_view text_;
};

// Decodes the escapes of a string's inside (without quotes). REQUIRES: validated by a Scanner. A lone
// surrogate, which JSON's grammar allows, decodes to U+FFFD.
std::string unescape(std::string_view inside);

// True when the key as spelled (without quotes, perhaps with escapes) names `name`.
bool key_equals(std::string_view spelled, bool escaped, std::string_view name);

template <class Visit>
void View::each_member(Visit&& visit) const {
  using Visited = std::remove_reference_t<Visit>;
  walk([](void* to, std::string_view key, bool escaped,
          std::string_view value) -> bool { return (*static_cast<Visited*>(to))(key, escaped, View(value)); },
       const_cast<void*>(static_cast<const void*>(std::addressof(visit))));
}

template <class Visit>
void View::each_element(Visit&& visit) const {
  using Visited = std::remove_reference_t<Visit>;
  walk([](void* to, std::string_view value) -> bool { return (*static_cast<Visited*>(to))(View(value)); },
       const_cast<void*>(static_cast<const void*>(std::addressof(visit))));
}

}  // namespace fairlead::json
