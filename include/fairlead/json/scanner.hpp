// Scanner: a strict pull parser for one JSON text (RFC 8259). It reads the text in one pass, builds no tree,
// and returns the byte ranges of values that it has fully validated: grammar, numbers, escapes, UTF-8,
// nesting.
//
// Example:
//   json::Scanner scanner(R"({"a":1,"b":[2]})");
//   std::string_view key;
//   std::string_view member;
//   bool escaped = false;
//   scanner.begin_object();
//   while (scanner.next_member(key, escaped)) scanner.value(member);
//   if (!scanner.finish()) return invalid("not a JSON object");
//
// validate() checks a whole text. To scan a large text in slices, call pause_with() first. A call that
// returns false while paused() is true must be repeated later.
//
// After an error every call returns false, and error() describes the first error and its position.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fairlead/base/result.hpp"

namespace fairlead::json {

inline constexpr std::size_t kDefaultMaxDepth = 512;

enum class Type : std::uint8_t { null, boolean, number, string, array, object };

// Returns the type of a value by its first byte. REQUIRES: `value` is valid JSON.
Type type_of(std::string_view value) noexcept;

enum class PlainBytes : std::uint8_t;

// The scanner keeps the kinds of the innermost 64 open containers in one word, one bit each: 1 for an object,
// 0 for an array. This stack has the words for the containers outside of them. It does not allocate up to the
// default maximum depth; only trusted text is deeper.
class OuterLevels {
 public:
  void push(std::uint64_t levels) {
    if (count_ < inline_.size()) {
      inline_[count_++] = levels;
    } else {
      more_.push_back(levels);
    }
  }
  std::uint64_t pop() noexcept {
    if (more_.empty()) return inline_[--count_];
    const std::uint64_t levels = more_.back();
    more_.pop_back();
    return levels;
  }

 private:
  std::array<std::uint64_t, kDefaultMaxDepth / 64> inline_;
  std::size_t count_ = 0;
  std::vector<std::uint64_t> more_;
};

// The same for the containers of a small text: it has at most one container per byte.
class SmallOuterLevels {
 public:
  static constexpr std::size_t kMaxTextBytes = 1024;

  void push(std::uint64_t levels) noexcept { levels_[count_++] = levels; }
  std::uint64_t pop() noexcept { return levels_[--count_]; }

 private:
  std::array<std::uint64_t, kMaxTextBytes / 64> levels_;
  std::size_t count_ = 0;
};

// ScanPauses: makes a scanner pause after a number of bytes, and stores the state of the paused scan.
class ScanPauses {
 public:
  // The scanner pauses after about every `bytes` bytes.
  explicit ScanPauses(std::size_t bytes) noexcept : interval_bytes_(bytes) {}

 private:
  friend class Scanner;
  void save(const char* token, bool after_key, std::size_t depth, std::uint64_t objects, OuterLevels outer) {
    token_ = token;
    after_key_ = after_key;
    depth_ = depth;
    objects_ = objects;
    outer_ = std::move(outer);
  }

  std::size_t interval_bytes_;
  const char* pause_at_ = nullptr;     // the scan pauses at or after this position
  const char* value_begin_ = nullptr;  // the beginning of the value or key; null if the scan is not paused
  const char* token_ = nullptr;        // the token at which the scan resumes
  const char* string_pos_ = nullptr;   // the position in that token if the scan paused inside a string
  bool after_key_ = false;             // the key before that token has been scanned
  std::size_t depth_ = 0;
  std::uint64_t objects_ = 0;
  OuterLevels outer_;
};

class Scanner {
  friend class ObjectScan;

 public:
  explicit Scanner(std::string_view text, std::size_t max_depth = kDefaultMaxDepth) noexcept
      : begin_(text.data()),
        p_(text.data()),
        end_(text.data() + text.size()),
        max_depth_(max_depth),
        window_(text.data() + text.size()) {}
  // Returns a scanner for valid JSON. It has no depth limit and does not check UTF-8 again.
  static Scanner trusted(std::string_view text) noexcept {
    Scanner scanner(text, static_cast<std::size_t>(-1));
    scanner.utf8_checked_ = true;
    return scanner;
  }

  // Scans one value of any type. Sets `out` to its exact bytes, without surrounding white space.
  bool value(std::string_view& out);

  // Reads an object member by member. After begin_object(), each next_member() sets `key` to the next key as
  // spelled, without quotes, and `escaped` to whether it contains escapes. Returns false at the closing brace
  // and on an error. After each key the caller calls value() or begin_…() exactly once.
  bool begin_object();
  bool next_member(std::string_view& key, bool& escaped);
  // Reads an array in the same way.
  bool begin_array();
  bool next_element();

  // Skips white space and returns the type of the next value. Returns nullopt at the end of the text, or if
  // no value begins with the next byte.
  std::optional<Type> peek();
  // Called after the last value. Fails if anything but white space follows.
  bool finish();

  // Makes value() and next_member() pause after the number of bytes given by `pauses`: they return false, and
  // paused() is true. The caller resumes the scan by repeating the same call. REQUIRES: `pauses` outlives the
  // scanner.
  void pause_with(ScanPauses& pauses) noexcept;
  bool paused() const noexcept { return pauses_ != nullptr && pauses_->value_begin_ != nullptr; }

  bool failed() const noexcept { return problem_ != Problem::none; }
  // Returns an error of kind `parse` with the problem and its byte offset. REQUIRES: failed().
  Error error() const;
  std::size_t offset() const noexcept { return static_cast<std::size_t>(p_ - begin_); }

  // Returns whether a raw CR or LF was found between tokens so far. Such a text must be converted by
  // to_one_line() before it is sent with line framing.
  bool saw_line_break() const noexcept { return line_break_; }

 private:
  enum class Problem : std::uint8_t {
    none,
    unexpected,  // a byte that is not allowed here, or the end of the text
    too_deep,
    end_in_string,
    end_in_number,
    bad_utf8,
    bad_escape,
    control_character,
    trailing,  // other bytes than white space after the value
  };

  // `small` is for containers near the end of a text whose last byte is `}`. It searches each string for its
  // end instead of computing the stops of whole windows, has no allocation to release, and reads the byte
  // after a token without a check: only a closing bracket can be the last byte.
  enum class Mode : std::uint8_t { whole, small, pausing };

  // The scan_… functions take the position of a token and return the position after it, or null after fail().
  // They pass positions instead of updating p_, so that positions stay in registers.
  bool fail(const char* position, Problem problem) noexcept;
  std::string describe_problem() const;
  char byte_at(const char* p) const noexcept { return p != end_ ? *p : '\0'; }
  char next_token(const char*& p) noexcept;
  char next_token_inside(const char*& p) noexcept;
  template <Mode kMode>
  char next_token_in(const char*& p) noexcept;
  const char* skip_space(const char* p) noexcept;
  const char* find_stop(const char* p) noexcept;
  const char* find_near_stop(const char* p) noexcept;
  const char* find_far_stop(const char* p) noexcept;
  const char* find_stop_beyond(const char* p, std::size_t ahead) noexcept;
  template <PlainBytes kPlain>
  const char* find_stop_from(const char* window, const char* p) noexcept;
  const char* scan_escape(const char* p) noexcept;
  const char* scan_number(const char* p, char c) noexcept;
  const char* scan_any_number(const char* p) noexcept;
  const char* scan_digits(const char* p) noexcept;
  const char* scan_literal(const char* p, std::string_view literal) noexcept;
  // For ObjectScan: the functions that are not inlined. `from` is the first byte of a key, `quote` the
  // opening quote of a string, and `c` the byte at `p`.
  const char* scan_unusual_key(const char* from, std::string_view& key, bool& escaped) noexcept;
  const char* scan_long_string(const char* quote) noexcept;
  const char* scan_other_value(const char* p, char c) noexcept;
  // The following functions also return null when the scan pauses.
  template <Mode kMode>
  const char* first_stop(const char* p) noexcept;
  template <Mode kMode>
  const char* scan_key(const char* p, char& c) noexcept;
  template <Mode kMode>
  const char* scan_scalar(const char* p, char c) noexcept;
  template <Mode kMode>
  const char* scan_string(const char* p) noexcept;
  template <Mode kMode>
  const char* scan_string_rest(const char* p) noexcept;
  template <Mode kMode>
  const char* scan_container(const char* p);
  bool value_with_pauses(std::string_view& out);
  bool next_member_with_pauses(std::string_view& key, bool& escaped);
  bool end_key(const char* from, const char* p, std::string_view& key, bool& escaped) noexcept;
  void schedule_pause() noexcept;
  bool check_utf8(const char* from) noexcept;
  bool begin_container(char open) noexcept;
  bool next_item(char close, const char*& p) noexcept;

  const char* begin_;
  const char* p_;  // the current position
  const char* end_;
  std::size_t max_depth_;
  std::size_t depth_ = 0;  // containers opened by begin_…() and not yet closed
  // stops_ has a bit for each of the 64 bytes at window_: 1 if the byte is not plain (text_scan.hpp). window_
  // is end_ if stops_ is not valid.
  const char* window_;
  std::uint64_t stops_ = ~std::uint64_t{0};
  ScanPauses* pauses_ = nullptr;
  Problem problem_ = Problem::none;
  bool line_break_ = false;
  bool at_first_item_ = false;  // no member of the innermost container opened by begin_…() was read yet
  bool utf8_checked_ = false;   // the rest of the text is known to be UTF-8
  bool saw_escape_ = false;     // the string scanned last has an escape
};

// Returns nullopt if `text` is one valid JSON value, possibly surrounded by white space; otherwise the error.
std::optional<Error> validate(std::string_view text, std::size_t max_depth = kDefaultMaxDepth);

// Removes white space between tokens. REQUIRES: `text` is valid JSON.
std::string minify(std::string_view text);

// Replaces line breaks by spaces. REQUIRES: `text` is valid JSON, in which line breaks occur only between
// tokens.
std::string to_one_line(std::string_view text);

}  // namespace fairlead::json
