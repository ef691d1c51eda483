// Tape: an index of one JSON text, made in one pass, so that the text can be walked many times without being
// read many times. Values lie in the order of the text; an object's keys are values of their own, before what
// they name. The text itself is not copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "fairlead/json/scanner.hpp"

namespace fairlead::json {

using Index = std::uint32_t;
inline constexpr Index kNowhere = 0xffffffff;

class Tape {
 public:
  enum class Problem : std::uint8_t { none, not_json, too_deep, too_many };
  struct Bounds {
    std::size_t max_values = kMaxValues;
    std::size_t max_depth = kDefaultMaxDepth;
  };
  static constexpr std::size_t kMaxValues = std::size_t{1} << 28;  // what a count has room for

  Tape() noexcept : entries_(inline_), capacity_(kInline) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // REQUIRES: `text` outlives the tape, and was validated: number syntax and UTF-8 are not looked at again.
  // Other text does no harm, but may be taken for JSON.
  Problem read(std::string_view text, Bounds bounds);

  std::size_t size() const noexcept { return size_; }

  Type type(Index at) const noexcept { return static_cast<Type>(entries_[at].info & 7); }
  std::string_view text(Index at) const noexcept { return {text_ + entries_[at].begin, entries_[at].length}; }
  Index next(Index at) const noexcept { return entries_[at].next; }  // after it and all it holds
  std::uint32_t count(Index at) const noexcept { return entries_[at].info >> 4; }  // elements or members
  // A string with escapes; a number with a point or an exponent.
  bool special(Index at) const noexcept { return (entries_[at].info & kSpecial) != 0; }

  // A string as spelled, without its quotes.
  std::string_view inside(Index at) const noexcept {
    return {text_ + entries_[at].begin + 1, entries_[at].length - std::size_t{2}};
  }
  // A string as it is meant; `room` is used where it has escapes.
  std::string_view string(Index at, std::string& room) const {
    return special(at) ? decoded(at, room) : inside(at);
  }

  // The last member of that name, or kNowhere.
  Index member(Index object, std::string_view name) const;
  // The JSON Pointer to a value; that of a key is its value's.
  std::string pointer(Index at) const;
  bool is_key(Index at) const;

 private:
  class Stops;
  struct Entry {
    std::uint32_t begin;
    std::uint32_t length;
    Index next;          // of an open container: the one around it
    std::uint32_t info;  // type, special, count
  };
  static constexpr std::uint32_t kSpecial = 8;
  static constexpr std::uint32_t kOne = 16;  // in a count
  static constexpr std::size_t kInline = 40;

  Index add(const char* begin, const char* end, Type type, bool special);
  const char* add_string(const char* p, const char* end, Stops& stops);
  const char* add_scalar(const char* p, const char* end, Stops& stops);
  void grow();
  template <class Visit>
  void descend(Index at, Visit&& visit) const;
  std::string_view decoded(Index at, std::string& room) const;

  const char* text_ = nullptr;
  Entry* entries_;
  std::size_t size_ = 0;
  std::size_t capacity_;
  std::unique_ptr<Entry[]> heap_;
  Entry inline_[kInline];  // small texts need no allocation
};

// `name` as one more step of a JSON Pointer.
void append_pointer_step(std::string& pointer, std::string_view name);

}  // namespace fairlead::json
