// The driver's end of the connection: requests that are built before the clock starts, and responses split at
// newlines. Nothing is allocated or formatted during the measurement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "child.hpp"

namespace bench {

// The kind of requests; by default calls of `echo` in the legacy era.
struct RequestKind {
  bool modern = false;
  bool list = false;  // `tools/list`, of tools up to `tool499`, instead of calls
};

// A ring of requests (`tools/call` of `echo`, or `tools/list`), contiguous in memory, each with its own id. A
// slot may be sent again once its response has arrived.
class Requests {
 public:
  // Each line is `line_bytes` long with its newline, if the envelope leaves room for a text. Requests of the
  // modern era have the same text and are longer.
  Requests(std::size_t slots, std::size_t line_bytes, RequestKind kind);

  std::size_t slots() const noexcept { return starts_.size() - 1; }
  // Returns the lines of the slots [first, last). REQUIRES: first <= last <= slots().
  std::string_view lines(std::size_t first, std::size_t last) const noexcept;
  // Returns the text that every response must contain.
  const std::string& text() const noexcept { return text_; }

  // Returns the slot of a response; nullopt if it answers no request of the ring.
  std::optional<std::size_t> slot_of(std::string_view answer) const noexcept;

 private:
  std::string text_;
  std::string block_;
  std::vector<std::size_t> starts_;  // the beginning of each line, and the end of the last
};

// Newline-delimited text to and from a child process. Writing never blocks; reading does.
class Wire {
 public:
  explicit Wire(const Child& child);

  // Queues lines for writing. They must stay valid until they are written. REQUIRES: at most two runs of
  // lines are unwritten at a time, as with a ring.
  void queue(std::string_view lines);
  // Writes as much as fits into the pipe. Returns false if some is left.
  bool flush();
  // Waits until there is input, writing what is queued meanwhile, and reads it.
  void read_some();
  // Returns the next complete line, without its newline.
  std::optional<std::string_view> next_line();

 private:
  void make_room();

  int to_;
  int from_;
  std::string_view unwritten_[2];
  std::vector<char> buffer_;
  std::size_t begin_ = 0;    // the first line that was not returned yet
  std::size_t scanned_ = 0;  // no newline from begin_ to here
  std::size_t end_ = 0;      // the end of the input read so far
};

}  // namespace bench
