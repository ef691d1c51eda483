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

void LogRateLimit::write(const Log& log, LogLevel level, std::string_view message,
                         std::initializer_list<LogField> fields) {
  if (!log.enabled(level)) return;
  const std::optional<std::uint64_t> suppressed = admit();
  if (!suppressed) return;
  if (*suppressed > 0) log.write(level, "log lines suppressed by log_lines", {{"lines", *suppressed}});
  log.write(level, message, fields);
}

}  // namespace fairlead
