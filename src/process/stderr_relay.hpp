// StderrRelay: copies a child's stderr to the stderr of this process, without blocking the loop and without
// losing text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/loop/descriptor.hpp"
#include "fairlead/loop/loop.hpp"

namespace fairlead::process {

// The stderr of this process is shared with other processes, so it cannot be made non-blocking: it is written
// in pieces that do not block when poll() reports it as writable. Bytes that it does not accept are buffered;
// the caller stops reading from the child while the buffer is not empty. Used on one loop thread.
class StderrRelay {
 public:
  explicit StderrRelay(Loop& loop) : loop_(&loop) {}

  // Writes to the stderr of this process as much as it accepts and buffers the rest. Discards everything if
  // the reading end of stderr is closed.
  void write(std::string_view bytes);
  // Ends the last line, if the child has not, so that the next text on stderr begins in column 0.
  void end_line();
  // Returns whether bytes are buffered.
  bool blocked() const noexcept { return !pending_.empty(); }
  // Sets a callback that runs once, when the buffer becomes empty.
  void when_drained(std::function<void()> callback) { on_drained_ = std::move(callback); }
  // Returns the number of bytes that stderr has accepted so far.
  std::uint64_t written_bytes() const noexcept { return written_bytes_; }

 private:
  void flush();
  void wait_until_writable();

  Loop* loop_;
  std::optional<Descriptor> writability_;  // an epoll descriptor: readable when stderr is writable
  std::string pending_;
  bool line_open_ = false;  // the last byte that was passed to write() is not a line feed
  std::uint64_t written_bytes_ = 0;
  std::function<void()> on_drained_;
};

}  // namespace fairlead::process
