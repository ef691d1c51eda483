// Scanner: reads one JSON text (RFC 8259) strictly, in one pass, and builds nothing. It hands out byte
// ranges of values it has fully validated: grammar, number syntax, escapes, UTF-8, nesting.
//
// Whole text:      if (auto error = json::validate(text)) …
// Piece by piece:  Scanner s(text); s.begin_object(); while (s.next_member(key)) s.value(slice); s.finish();
//
// In parts:        ScanPauses pauses(bytes); s.pause_with(pauses); … while s.paused(), the same call goes on.
//
// The first error sticks: every later call returns false, and error() says what was wrong and where.
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

// The type of a valid value, from its first byte.
Type type_of(std::string_view value) noexcept;

// The kinds of the containers around the innermost 64 levels of a scan, a bit each: 1 for an object. Does not
// allocate up to the default depth; only trusted text goes deeper.
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

// How often a scan of a large text pauses, and where it is meanwhile.
class ScanPauses {
 public:
  // The scanner pauses after about `bytes` bytes.
  explicit ScanPauses(std::size_t bytes) noexcept : bytes_(bytes) {}

 private:
  friend class Scanner;
  void keep(const char* at, bool after_key, std::size_t depth, std::uint64_t objects, OuterLevels outer) {
    at_ = at;
    after_key_ = after_key;
    depth_ = depth;
    objects_ = objects;
    outer_ = std::move(outer);
  }

  std::size_t bytes_;
  const char* until_ = nullptr;   // the scan pauses at or after this position
  const char* begun_ = nullptr;   // of a paused scan: the beginning of the value or key, null if not paused
  const char* at_ = nullptr;      // the token to go on with
  const char* string_ = nullptr;  // the position in that token, if it is a string that was begun
  bool after_key_ = false;        // its key has been scanned
  std::size_t depth_ = 0;
  std::uint64_t objects_ = 0;
  OuterLevels outer_;
};

class Scanner {
 public:
  explicit Scanner(std::string_view text, std::size_t max_depth = kDefaultMaxDepth) noexcept
      : begin_(text.data()),
        p_(text.data()),
        end_(text.data() + text.size()),
        max_depth_(max_depth),
        window_(text.data() + text.size()) {}
  // For text that was validated before: of any depth, and its UTF-8 is not looked at again.
  static Scanner trusted(std::string_view text) noexcept {
    Scanner scanner(text, static_cast<std::size_t>(-1));
    scanner.utf8_checked_ = true;
    return scanner;
  }

  // Scans one value of any type. `out` is its exact bytes, without surrounding white space.
  bool value(std::string_view& out);

  // An object, member by member. After begin_object(), next_member() yields each key as spelled, without
  // its quotes (`escaped` says whether it contains escapes), until it returns false: at the closing
  // brace, or on an error. Each yielded key must be followed by exactly one value() or begin_…().
  bool begin_object();
  bool next_member(std::string_view& key, bool& escaped);
  // An array likewise.
  bool begin_array();
  bool next_element();

  // Type of the value that comes next, skipping white space; nullopt at the end or at an illegal byte.
  std::optional<Type> peek();
  // Nothing but white space may be left.
  bool finish();

  // From now on value() and next_member() return false after every few bytes, as `pauses` says: paused() is
  // true then, and calling the same function again goes on. `pauses` must outlive the scanner.
  void pause_with(ScanPauses& pauses) noexcept;
  bool paused() const noexcept { return pauses_ != nullptr && pauses_->begun_ != nullptr; }

  bool failed() const noexcept { return problem_ != Problem::none; }
  // REQUIRES: failed(). Kind parse; the message names what was wrong and the byte offset.
  Error error() const;
  std::size_t offset() const noexcept { return static_cast<std::size_t>(p_ - begin_); }

  // Whether a raw CR or LF stood between tokens so far: such a text goes through one_line() before it
  // can be sent as one line.
  bool saw_line_break() const noexcept { return line_break_; }

 private:
  enum class Problem : std::uint8_t {
    none,
    unexpected,  // a byte that may not stand here, or the end of the text
    too_deep,
    end_in_string,
    end_in_number,
    bad_utf8,
    bad_escape,
    control_character,
    trailing,
  };

  // The scan_… functions take the position of a token, and return the position after it, or null after
  // fail(). They pass positions instead of moving p_ so that these stay in registers.
  bool fail(const char* at, Problem problem) noexcept;
  std::string describe_problem() const;
  char head(const char* p) const noexcept { return p != end_ ? *p : '\0'; }
  char next(const char*& p) noexcept;
  const char* skip_space(const char* p) noexcept;
  const char* find_stop(const char* p) noexcept;
  const char* find_stop_beyond(const char* p, std::size_t ahead) noexcept;
  const char* scan_escape(const char* p) noexcept;
  const char* scan_number(const char* p, char c) noexcept;
  const char* scan_any_number(const char* p) noexcept;
  const char* scan_digits(const char* p) noexcept;
  const char* scan_literal(const char* p, std::string_view literal) noexcept;
  // These also return null when the scan pauses.
  template <bool kPauses>
  const char* first_stop(const char* p) noexcept;
  template <bool kPauses>
  const char* scan_key(const char* p, char& c) noexcept;
  template <bool kPauses>
  const char* scan_scalar(const char* p, char c) noexcept;
  template <bool kPauses>
  const char* scan_string(const char* p) noexcept;
  template <bool kPauses>
  const char* scan_string_rest(const char* p) noexcept;
  template <bool kPauses>
  const char* scan_container(const char* p);
  bool paused_value(std::string_view& out);
  bool next_paused_member(std::string_view& key, bool& escaped);
  bool end_key(const char* from, const char* p, std::string_view& key, bool& escaped) noexcept;
  void go_on() noexcept;
  bool check_utf8(const char* from) noexcept;
  bool begin_container(char open) noexcept;
  bool next_item(char close, const char*& p) noexcept;

  const char* begin_;
  const char* p_;
  const char* end_;
  std::size_t max_depth_;
  std::size_t depth_ = 0;  // containers opened piece by piece and not yet closed
  // A bit for each of the 64 bytes at window_ that cannot stand in a string as it is. window_ is end_ while
  // there is no such knowledge.
  const char* window_;
  std::uint64_t stops_ = ~std::uint64_t{0};
  ScanPauses* pauses_ = nullptr;
  Problem problem_ = Problem::none;
  bool line_break_ = false;
  bool first_ = false;         // the innermost container opened piece by piece has had no member yet
  bool utf8_checked_ = false;  // the rest of the text is known to be UTF-8
  bool saw_escape_ = false;    // in the string scanned last
};

// nullopt when `text` is one valid JSON value with nothing but white space around it.
std::optional<Error> validate(std::string_view text, std::size_t max_depth = kDefaultMaxDepth);

// Removes white space between tokens. REQUIRES: `text` is valid JSON.
std::string minify(std::string_view text);

// Replaces line breaks by spaces. REQUIRES: `text` is valid JSON, where a line break is white space between
// tokens.
std::string one_line(std::string_view text);

}  // namespace fairlead::json
