// ObjectScan: reads an object with a Scanner, with the same strictness and the same errors, but inlined into
// the caller: the position stays in a register, and no function is called for a short key or string. It does
// not pause, so it is for texts that are read at once.
//
//   for (bool more = scan.begin_object(); more; more = scan.next_member()) {
//     if (!scan.read_key() || !scan.read_value(value)) break;
//     … scan.key(), value …
//   }
//   if (!scan.finish()) return scanner.error();
#pragma once

#include <cstdint>
#include <string_view>

#include "fairlead/json/member_index.hpp"
#include "json/scanner_inline.hpp"

namespace fairlead::json {

class ObjectScan {
 public:
  // REQUIRES: the scanner was not used before, has no pauses, and outlives this object. Its text begins with
  // `{` and ends with `}`.
  explicit ObjectScan(Scanner& scanner) noexcept : scanner_(scanner), p_(scanner.p_) {}

  // Moves into the object at the current position, to its first member. Returns false if it has no members,
  // and on an error. REQUIRES: at_object().
  [[gnu::always_inline]] bool begin_object() noexcept {
    if (scanner_.depth_ == scanner_.max_depth_) return scanner_.fail(p_, Scanner::Problem::too_deep);
    ++p_;
    c_ = scanner_.next_token_inside(p_);
    if (c_ == '}') {
      ++p_;
      return false;
    }
    ++scanner_.depth_;
    return true;
  }
  // Moves to the next member after a value. Returns false at the end of the object, after which the position
  // is behind its closing brace, and on an error.
  [[gnu::always_inline]] bool next_member() noexcept {
    const char c = scanner_.next_token(p_);
    if (c != ',') {
      if (c != '}') return scanner_.fail(p_, Scanner::Problem::unexpected);
      --scanner_.depth_;
      ++p_;
      return false;
    }
    ++p_;
    c_ = scanner_.next_token_inside(p_);
    return true;
  }
  // Reads the key of the member and moves to its value. Returns false on an error.
  [[gnu::always_inline]] bool read_key() noexcept {
    if (c_ != '"') return scanner_.fail(p_, Scanner::Problem::unexpected);
    const char* const from = p_ + 1;
    const char* const stop = stop_in_block<PlainBytes::ascii>(from, scanner_.end_);
    if (stop != nullptr && stop[0] == '"' && stop[1] == ':')
        [[likely]] {  // a stop is never the last byte, `}`
      key_ = std::string_view(from, static_cast<std::size_t>(stop - from));
      escaped_ = false;
      p_ = stop + 2;
      c_ = scanner_.next_token_inside(p_);
      return true;
    }
    p_ = scanner_.scan_unusual_key(from, key_, escaped_);
    if (p_ == nullptr) return false;
    c_ = scanner_.byte_at(p_);
    return true;
  }
  // Return the key as spelled, without quotes, and whether it has escapes.
  std::string_view key() const noexcept { return key_; }
  bool escaped() const noexcept { return escaped_; }

  // Returns whether the value of the member is an object.
  bool at_object() const noexcept { return c_ == '{'; }

  // Reads a value and sets `value` to its exact bytes. Returns false on an error.
  [[gnu::always_inline]] bool read_value(std::string_view& value) noexcept {
    const char* const from = p_;
    if (c_ == '"') {
      const char* const stop = stop_in_block<PlainBytes::ascii>(p_ + 1, scanner_.end_);
      p_ = stop != nullptr && *stop == '"' ? stop + 1 : scanner_.scan_long_string(p_);
    } else if (is_digit(c_)) {
      p_ = scanner_.scan_number(p_, c_);
    } else {
      p_ = scanner_.scan_other_value(p_, c_);
    }
    if (p_ == nullptr) [[unlikely]]
      return false;
    value = std::string_view(from, static_cast<std::size_t>(p_ - from));
    return true;
  }
  // The same for an object, whose members it adds to `index`. REQUIRES: at_object().
  [[gnu::always_inline]] bool read_object(MemberIndex& index, std::string_view& object) {
    const char* const from = p_;
    const auto offset = [from](const char* p) { return static_cast<std::uint32_t>(p - from); };
    if (index.complete_ || index.count_ != 0) [[unlikely]]
      index = MemberIndex();
    std::string_view value;
    for (bool more = begin_object(); more; more = next_member()) {
      if (!read_key() || !read_value(value)) return false;
      index.add(MemberIndex::Member{offset(key_.data()), static_cast<std::uint32_t>(key_.size()),
                                    offset(value.data()), static_cast<std::uint32_t>(value.size())},
                escaped_);
    }
    if (scanner_.failed()) return false;
    object = std::string_view(from, static_cast<std::size_t>(p_ - from));
    index.set_complete(object.size());
    return true;
  }

  // Called after the last value. Returns false if there was an error, or if anything but white space follows.
  bool finish() noexcept {
    if (!scanner_.failed()) scanner_.p_ = p_;
    return scanner_.finish();
  }

 private:
  Scanner& scanner_;
  const char* p_;
  char c_ = '{';  // the byte at p_, at the beginning of a key or value
  bool escaped_ = false;
  std::string_view key_;
};

}  // namespace fairlead::json
