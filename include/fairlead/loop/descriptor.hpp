// Descriptor: owns a file descriptor and calls back when it becomes readable or writable. Reading and writing
// are left to the user, who can read into a shared buffer and write with writev().
#pragma once

#include <memory>

#include "fairlead/base/result.hpp"
#include "fairlead/loop/loop.hpp"

namespace fairlead {

// Owns a file descriptor and closes it on destruction.
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
  using ReadyCallback = std::move_only_function<void()>;

  // Makes `fd` non-blocking and takes ownership of it. A regular file, which epoll does not support, is
  // always ready. Fails with kind `io` if `fd` is not a valid descriptor, or if epoll rejects it.
  static Result<Descriptor> adopt(Loop& loop, UniqueFd fd);
  Descriptor(Descriptor&&) noexcept;
  Descriptor& operator=(Descriptor&&) noexcept;
  ~Descriptor();

  int fd() const noexcept;
  bool is_open() const noexcept;
  // Call `ready` once, on the loop thread, when the descriptor is readable (or at end of file), or writable
  // (or broken). At most one callback of each kind is outstanding: a second call replaces the first callback.
  // After that, the callback may run although nothing can be read or written. No callback runs after close()
  // or destruction.
  void when_readable(ReadyCallback ready);
  void when_writable(ReadyCallback ready);
  // To be called when a read has returned EAGAIN, or less than was asked for from a pipe or a stream socket.
  // The next when_readable() then needs no system call, because the descriptor reports new input by itself.
  void input_drained() noexcept;
  // Returns whether no input has been reported since input_drained().
  bool input_is_drained() const noexcept;
  // Return whether a callback of when_readable() or when_writable() is outstanding.
  bool waiting_to_read() const noexcept;
  bool waiting_to_write() const noexcept;
  void close();

 private:
  struct Impl;
  explicit Descriptor(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead
