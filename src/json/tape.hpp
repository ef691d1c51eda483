// Tape: an index of one JSON text, built in one pass, so that the values can be visited many times without
// reading the text again. Entries are in the order of the text; each key of an object has an entry, followed
// by that of its value. The text itself is not copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "fairlead/json/scanner.hpp"

namespace fairlead::json {

// The index of an entry in a Tape.
using TapeIndex = std::uint32_t;
inline constexpr TapeIndex kNoIndex = 0xffffffff;

class Tape {
 public:
  enum class Problem : std::uint8_t { none, not_json, too_deep, too_many_values };
  struct Bounds {
    std::size_t max_values = kMaxValues;
    std::size_t max_depth = kDefaultMaxDepth;
  };
  static constexpr std::size_t kMaxValues = std::size_t{1} << 28;  // Entry::info has 28 bits for a count

  Tape() noexcept : entries_(inline_), capacity_(kInlineEntries) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // Indexes `text`. REQUIRES: `text` outlives the tape and is valid JSON: number syntax and UTF-8 are not
  // checked again. Invalid text is handled safely, but may be accepted.
  Problem read(std::string_view text, Bounds bounds);

  std::size_t size() const noexcept { return size_; }

  Type type(TapeIndex entry) const noexcept { return static_cast<Type>(entries_[entry].info & 7); }
  std::string_view text(TapeIndex entry) const noexcept {
    return {text_ + entries_[entry].begin, entries_[entry].length};
  }
  // Returns the entry after the value at `entry` and everything inside it.
  TapeIndex next(TapeIndex entry) const noexcept { return entries_[entry].next; }
  // Returns the number of elements or members of a container.
  std::uint32_t item_count(TapeIndex entry) const noexcept { return entries_[entry].info >> 4; }
  // Returns true for a string with escapes, and for a number with a point or an exponent.
  bool needs_decoding(TapeIndex entry) const noexcept { return (entries_[entry].info & kNeedsDecoding) != 0; }

  // Returns a string as spelled, without quotes.
  std::string_view unquoted(TapeIndex entry) const noexcept {
    return {text_ + entries_[entry].begin + 1, entries_[entry].length - std::size_t{2}};
  }
  // Returns a string with its escapes decoded. If it has escapes, the result points into `buffer`.
  std::string_view string(TapeIndex entry, std::string& buffer) const {
    return needs_decoding(entry) ? decoded(entry, buffer) : unquoted(entry);
  }

  // Returns the value of the last member with this name; kNoIndex if there is none.
  TapeIndex member(TapeIndex object, std::string_view name) const;
  // Returns the JSON Pointer to a value. The pointer of a key is that of its value.
  std::string pointer(TapeIndex entry) const;
  bool is_key(TapeIndex entry) const;

 private:
  class Stops;
  struct Entry {
    std::uint32_t begin;
    std::uint32_t length;
    TapeIndex next;      // see next(); while a container is being read: its enclosing container
    std::uint32_t info;  // the type, kNeedsDecoding and the count
  };
  static constexpr std::uint32_t kNeedsDecoding = 8;
  static constexpr std::uint32_t kCountUnit = 16;  // added to `info` for each element or member
  static constexpr std::size_t kInlineEntries = 40;

  TapeIndex add(const char* begin, const char* end, Type type, bool needs_decoding);
  const char* add_string(const char* p, const char* end, Stops& stops);
  const char* add_scalar(const char* p, const char* end, Stops& stops);
  void grow();
  template <class Visit>
  void visit_path_to(TapeIndex entry, Visit&& visit) const;
  std::string_view decoded(TapeIndex entry, std::string& buffer) const;

  const char* text_ = nullptr;
  Entry* entries_;
  std::size_t size_ = 0;
  std::size_t capacity_;
  std::unique_ptr<Entry[]> heap_;
  Entry inline_[kInlineEntries];  // small texts need no allocation
};

// Appends `name` to a JSON Pointer as a reference token (RFC 6901).
void append_pointer_token(std::string& pointer, std::string_view name);

}  // namespace fairlead::json
