#include "process/descriptor_limit.hpp"

#include <sys/resource.h>

#include <atomic>
#include <cerrno>

namespace fairlead {

namespace {

constexpr rlim_t kNotRaised = RLIM_INFINITY;
std::atomic<rlim_t> previous_soft_limit{kNotRaised};  // global, as the limit itself is

}  // namespace

Result<std::size_t> raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return Error::from_errno(ErrorKind::io, "cannot read RLIMIT_NOFILE", errno);
  const rlim_t previous = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (previous != limit.rlim_max) {
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0)
      return Error::from_errno(ErrorKind::io, "cannot raise RLIMIT_NOFILE", errno);
    previous_soft_limit = previous;
  }
  return static_cast<std::size_t>(limit.rlim_cur);
}

void process::restore_descriptor_limit(pid_t pid) noexcept {
  const rlim_t soft = previous_soft_limit;
  rlimit limit{};
  if (soft == kNotRaised || ::prlimit(pid, RLIMIT_NOFILE, nullptr, &limit) != 0) return;
  limit.rlim_cur = soft;
  ::prlimit(pid, RLIMIT_NOFILE, &limit, nullptr);
}

}  // namespace fairlead
