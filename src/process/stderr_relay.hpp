// StderrRelay: copies a child's stderr to our own without blocking the loop and without losing text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/loop/descriptor.hpp"
#include "fairlead/loop/loop.hpp"

namespace fairlead::process {

// Our stderr is shared with other processes, so it cannot be made non-blocking: it is written in pieces that
// fit when it polls writable. What it does not accept is kept; the caller reads no more from the child while
// there is any. Runs on one loop.
class StderrRelay {
 public:
  explicit StderrRelay(Loop& loop) : loop_(&loop) {}

  // Writes what our stderr accepts and keeps the rest. Discards all if nobody can read our stderr any more.
  void write(std::string_view bytes);
  // Whether something is kept. The callback of when_drained() runs when that is no longer so.
  bool blocked() const noexcept { return !pending_.empty(); }
  void when_drained(std::function<void()> callback) { on_drained_ = std::move(callback); }
  // Bytes our stderr has accepted so far.
  std::uint64_t written() const noexcept { return written_; }

 private:
  void flush();
  void wait();

  Loop* loop_;
  std::optional<Descriptor> writable_;  // an epoll descriptor: readable when our stderr is writable
  std::string pending_;
  std::uint64_t written_ = 0;
  std::function<void()> on_drained_;
};

}  // namespace fairlead::process
