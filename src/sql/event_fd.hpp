// EventFd: a flag that another thread can wait for with poll(). Thread-safe.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "fairlead/base/result.hpp"
#include "fairlead/loop/descriptor.hpp"

namespace fairlead::sql {

class EventFd {
 public:
  // Fails with `resource_exhausted` when the process is out of descriptors.
  static Result<EventFd> create() {
    EventFd created;
    created.fd_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!created.fd_) return Error::from_errno(ErrorKind::resource_exhausted, "eventfd", errno);
    return created;
  }
  // Makes the descriptor readable until clear().
  void set() const noexcept {
    const std::uint64_t one = 1;
    if (::write(fd_.get(), &one, sizeof one) < 0) return;  // the flag is set already
  }
  void clear() const noexcept {
    std::uint64_t count = 0;
    if (::read(fd_.get(), &count, sizeof count) < 0) return;  // the flag is not set
  }
  int fd() const noexcept { return fd_.get(); }

 private:
  EventFd() = default;
  UniqueFd fd_;
};

}  // namespace fairlead::sql
