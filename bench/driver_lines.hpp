// The driver's side of the wire: requests that are built before the clock starts, and answers cut at
// newlines. Nothing is allocated or formatted while it measures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "child.hpp"

namespace bench {

// What the requests are: calls of `echo` in the legacy era, unless said otherwise.
struct Say {
  bool modern = false;
  bool list = false;  // `tools/list`, of tools up to `tool499`
};

// A ring of requests `tools/call` `echo` (or `tools/list`), one after the other in memory, each under an id
// of its own. A slot may be sent again once it has been answered.
class Requests {
 public:
  // Each line is `line_bytes` long with its newline, as far as the envelope leaves room for a text at all.
  // Modern ones have the same text, and are longer.
  Requests(std::size_t slots, std::size_t line_bytes, Say say);

  std::size_t slots() const noexcept { return starts_.size() - 1; }
  // The lines of the slots from `first` to before `last`. REQUIRES: first <= last <= slots().
  std::string_view lines(std::size_t first, std::size_t last) const noexcept;
  // What every answer must contain.
  const std::string& text() const noexcept { return text_; }

  // Which slot an answer belongs to; nullopt when it is none of ours.
  std::optional<std::size_t> slot_of(std::string_view answer) const noexcept;

 private:
  std::string text_;
  std::string block_;
  std::vector<std::size_t> starts_;  // of each line, and the end of the last
};

// Newline-delimited text to and from a child. Writing never blocks; reading does.
class Wire {
 public:
  explicit Wire(const Child& child);

  // Adds lines to what is to be written. They must live until they are. REQUIRES: at most two at a time are
  // unwritten, which is what a ring gives.
  void queue(std::string_view lines);
  // Writes as much as fits into the pipe; false when some is left.
  bool flush();
  // Waits until something came, writing what is left meanwhile, and reads it.
  void read_some();
  // The next whole line, without its newline.
  std::optional<std::string_view> next_line();

 private:
  void make_room();

  int to_;
  int from_;
  std::string_view unwritten_[2];
  std::vector<char> buffer_;
  std::size_t begin_ = 0;   // of the first line that was not handed out
  std::size_t looked_ = 0;  // no newline from begin_ to here
  std::size_t end_ = 0;     // of what was read
};

}  // namespace bench
