// LogRateLimit: bounds how many log lines one source may cause. A remote side that repeats a fault a million
// times must not fill a disk. Give each source (a connection, a child's stderr) a limiter of its own, so that
// one that floods hides nothing about the others.
//
//   limit_.write(log, LogLevel::warning, "id mismatch", {{"id", id}});
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "fairlead/base/log.hpp"

namespace fairlead {

// Not thread-safe: use it on one loop.
class LogRateLimit {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::size_t kLogLines = 20;                      // log_lines: admitted per interval
  static constexpr std::chrono::milliseconds kLogInterval{10'000};  // log_interval

  explicit LogRateLimit(std::size_t lines = kLogLines, std::chrono::milliseconds interval = kLogInterval)
      : lines_(lines), interval_(interval) {}

  // Returns nullopt if the line must not be written. Otherwise returns how many lines were suppressed since
  // the last line that was admitted.
  std::optional<std::uint64_t> admit(Time now = std::chrono::steady_clock::now()) noexcept;

  // Writes the line unless it must not be written; says first how many lines were suppressed before it.
  void write(const Log& log, LogLevel level, std::string_view message,
             std::initializer_list<LogField> fields);

  // Lines suppressed since the last one that was admitted; for a final report.
  std::uint64_t suppressed() const noexcept { return suppressed_; }

 private:
  std::size_t lines_;
  std::chrono::milliseconds interval_;
  Time interval_end_ = Time::min();
  std::size_t admitted_ = 0;  // in the current interval
  std::uint64_t suppressed_ = 0;
};

}  // namespace fairlead
