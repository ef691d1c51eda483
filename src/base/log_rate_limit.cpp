#include "fairlead/base/log_rate_limit.hpp"

#include <utility>

namespace fairlead {

std::optional<std::uint64_t> LogRateLimit::admit(Time now) noexcept {
  if (now >= interval_end_) {
    interval_end_ = now + interval_;
    admitted_ = 0;
  }
  if (admitted_ >= lines_) {
    ++suppressed_;
    return std::nullopt;
  }
  ++admitted_;
  return std::exchange(suppressed_, 0);
}

}  // namespace fairlead
