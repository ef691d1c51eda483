// Descriptor: owns a file descriptor and says when it can be read or written. It waits and does no I/O
// itself, so that reads can go to a shared buffer and writes can be gathered by whoever does them.
#pragma once

#include <memory>

#include "fairlead/base/result.hpp"
#include "fairlead/loop/loop.hpp"

namespace fairlead {

class UniqueFd {
 public:
  UniqueFd() noexcept = default;
  explicit UniqueFd(int fd) noexcept : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int release() noexcept { return std::exchange(fd_, -1); }
  void reset() noexcept;

 private:
  int fd_ = -1;
};

class Descriptor {
 public:
  using Ready = std::move_only_function<void()>;

  // Makes the descriptor non-blocking. Regular files, which cannot be waited for, are always ready.
  static Result<Descriptor> adopt(Loop& loop, UniqueFd fd);
  Descriptor(Descriptor&&) noexcept;
  Descriptor& operator=(Descriptor&&) noexcept;
  ~Descriptor();

  int fd() const noexcept;
  bool open() const noexcept;
  // Calls back once when the descriptor is readable (or at its end), or writable (or broken). At most one
  // callback of each kind is outstanding: another call replaces it, at no cost. A callback that replaced
  // another one may be called although nothing can be read or written any more. Neither is called after
  // close() or destruction.
  void when_readable(Ready ready);
  void when_writable(Ready ready);
  // Whether a callback is outstanding.
  bool waiting_to_read() const noexcept;
  bool waiting_to_write() const noexcept;
  void close();

 private:
  struct Impl;
  explicit Descriptor(std::shared_ptr<Impl> impl) noexcept;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fairlead
