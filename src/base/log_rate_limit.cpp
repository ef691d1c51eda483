#include "fairlead/base/log_rate_limit.hpp"

#include <utility>

namespace fairlead {

std::optional<std::uint64_t> LogRateLimit::admit(Time now) noexcept {
  if (now >= interval_end_) {
    interval_end_ = now + interval_;
    admitted_count_ = 0;
  }
  if (admitted_count_ >= max_lines_) {
    ++suppressed_count_;
    return std::nullopt;
  }
  ++admitted_count_;
  return std::exchange(suppressed_count_, 0);
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
