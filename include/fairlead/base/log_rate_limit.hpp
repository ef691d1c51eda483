// LogRateLimit: limits how many log lines one source can cause per interval, so that a remote peer that
// repeats an error a million times does not fill the disk. Each source (a connection, a child's stderr) needs
// its own limiter, so that a flood from one source does not suppress lines about the others.
//
// Example:
//   LogRateLimit limit;
//   limit.write(log, LogLevel::warning, "response has an unknown id", {{"id", "7"}});
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "fairlead/base/log.hpp"

namespace fairlead {

// Not thread-safe.
class LogRateLimit {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::size_t kDefaultMaxLines = 20;  // the limit log_lines: lines per interval
  static constexpr std::chrono::milliseconds kDefaultInterval{10'000};  // the limit log_interval

  explicit LogRateLimit(std::size_t max_lines = kDefaultMaxLines,
                        std::chrono::milliseconds interval = kDefaultInterval)
      : max_lines_(max_lines), interval_(interval) {}

  // Counts a line that the caller wants to write at the time `now`. Returns nullopt if the caller must
  // suppress the line. Otherwise returns the number of lines suppressed since the last admitted line.
  std::optional<std::uint64_t> admit(Time now = std::chrono::steady_clock::now()) noexcept;

  // Writes the line if admit() allows it, preceded by a line with the number of suppressed lines, if any.
  void write(const Log& log, LogLevel level, std::string_view message,
             std::initializer_list<LogField> fields);

  // Returns the number of lines suppressed since the last admitted line; for a final report.
  std::uint64_t suppressed_count() const noexcept { return suppressed_count_; }

 private:
  std::size_t max_lines_;
  std::chrono::milliseconds interval_;
  Time interval_end_ = Time::min();
  std::size_t admitted_count_ = 0;  // lines admitted in the current interval
  std::uint64_t suppressed_count_ = 0;
};

}  // namespace fairlead
