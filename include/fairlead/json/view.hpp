// View: a non-owning view of valid JSON that is read without building a tree. Each lookup of a member reads
// the whole object; use Members to find several members in one pass, or the MemberIndex of a message to find
// the members of its params or result without reading. The Raw or the string must outlive the View.
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
  // REQUIRES: `text` is valid JSON, or empty for an absent value.
  explicit View(std::string_view text) noexcept
      : text_(text.empty() || (!may_be_space(text.front()) && !may_be_space(text.back())) ? text
                                                                                          : trimmed(text)) {}
  explicit View(const Raw& raw) noexcept : View(raw.text()) {}

  bool absent() const noexcept { return text_.empty(); }
  std::string_view text() const noexcept { return text_; }
  Type type() const noexcept { return type_of(text_); }  // REQUIRES: !absent()
  bool is(Type type) const noexcept {
    if (absent()) return false;
    switch (type) {
      case Type::object: return text_.front() == '{';
      case Type::array: return text_.front() == '[';
      case Type::string: return text_.front() == '"';
      default: return this->type() == type;
    }
  }

  // Returns the value of the member whose unescaped name is `key`. Returns an absent view if there is none,
  // or if this is not an object. Always reads to the end of the object: if a key is repeated, the last value
  // counts, as in nearly every other parser.
  View operator[](std::string_view key) const;
  // Returns an element of an array; absent if there is none, or if this is not an array.
  View operator[](std::size_t index) const;
  std::size_t size() const;  // elements or members; 0 for scalars

  // These return nullopt if the value is of another type or out of range.
  std::optional<bool> as_bool() const noexcept;
  std::optional<std::int64_t> as_int() const noexcept;  // 3, 3.0 and 3e0 are all the integer 3
  std::optional<double> as_double() const noexcept;
  std::optional<std::string> as_string() const;  // escapes decoded
  // The same, but returns nullopt also for a string of more than `max_bytes`.
  std::optional<std::string> as_string(std::size_t max_bytes) const;
  // Assigns the decoded string to `out` and reuses its memory. Returns false, and does not change `out`, if
  // the value is not a string.
  bool read_string(std::string& out) const;

  // Call visit(key, escaped, value) for each member, or visit(value) for each element, until `visit` returns
  // false. `key` is the spelling in the text, without quotes; `escaped` is true if it contains escapes. Do
  // not allocate.
  template <class Visit>
  void each_member(Visit&& visit) const;
  template <class Visit>
  void each_element(Visit&& visit) const;

 private:
  using MemberVisitor = bool(void* visit, std::string_view key, bool escaped, std::string_view value);
  using ElementVisitor = bool(void* visit, std::string_view value);
  static constexpr bool may_be_space(char c) noexcept { return static_cast<unsigned char>(c) <= ' '; }
  static std::string_view trimmed(std::string_view text) noexcept;
  std::string_view unquoted() const noexcept { return text_.substr(1, text_.size() - 2); }
  void walk(MemberVisitor* visitor, void* visit) const;
  void walk(ElementVisitor* visitor, void* visit) const;

  std::string_view text_;
};

// Decodes the escapes in the content of a string (without quotes). A lone surrogate, which the grammar of
// JSON allows, decodes to U+FFFD. REQUIRES: a Scanner has validated the string.
std::string unescape(std::string_view content);

// Returns whether a key equals `name`. `raw_key` is the key as in the text, without quotes; `escaped` is true
// if it contains escapes.
bool key_equals(std::string_view raw_key, bool escaped, std::string_view name);

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
