// LogRepeats: collapses repeated warnings and errors of a log for people into one line with a count.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/log.hpp"

namespace fairlead {

// A line is written when it occurs for the first time. It is not written again for `interval`, only counted;
// then a summary such as "… repeated 17 times in 30s" is due. Lines are compared without numbers within
// sentences, such as durations, process ids and times; a field whose value is a number, such as dropped=12,
// is compared. A summary is due at the first line of any kind after the interval, and at the end of the log:
// there is no timer. Not thread-safe.
class LogRepeats {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // The number of different lines that are remembered. The one that has not occurred for longest is dropped.
  static constexpr std::size_t kMaxLines = 64;

  explicit LogRepeats(std::chrono::seconds interval = std::chrono::seconds(30)) : interval_(interval) {}

  struct Summary {
    LogLevel level;
    std::string text;
  };
  // Returns whether to write a line with this text. Levels below `warning` are always written.
  bool admit(Time now, LogLevel level, std::string_view text);
  // Returns and removes the summaries that are due.
  std::vector<Summary> due(Time now);
  // Returns and removes all summaries.
  std::vector<Summary> drain(Time now);

 private:
  struct Line {
    std::uint64_t key = 0;
    LogLevel level = LogLevel::warning;
    Time since;                    // when the line was last written
    std::uint64_t suppressed = 0;  // since then
    std::string text;              // of the last occurrence
  };
  static Summary summary(const Line& line, Time now);

  std::chrono::seconds interval_;
  std::list<Line> lines_;  // the one that occurred last is the first
  std::vector<Summary> dropped_;
};

}  // namespace fairlead
