// Log: structured lines for people (text) or machines (JSON lines). A line that cannot be written at
// once is dropped and counted: logging never blocks the loop it is called from.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace fairlead {

enum class LogLevel : std::uint8_t { trace, debug, info, warning, error, off };
enum class LogFormat : std::uint8_t { text, json };

std::string_view to_string(LogLevel level) noexcept;

struct LogField {
  std::string_view key;
  std::string value;
};

// Cheap to copy; copies write to the same place. Safe from any thread.
class Log {
 public:
  // Receives whole lines, each ended by '\n'.
  using Sink = std::function<void(std::string_view line)>;

  Log() noexcept = default;  // says nothing
  Log(LogLevel level, LogFormat format, Sink sink);
  static Log to_stderr(LogLevel level, LogFormat format = LogFormat::text);

  bool enabled(LogLevel level) const noexcept;
  void write(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {}) const;

  void debug(std::string_view message, std::initializer_list<LogField> fields = {}) const {
    if (enabled(LogLevel::debug)) write(LogLevel::debug, message, fields);
  }
  void info(std::string_view message, std::initializer_list<LogField> fields = {}) const {
    if (enabled(LogLevel::info)) write(LogLevel::info, message, fields);
  }
  void warning(std::string_view message, std::initializer_list<LogField> fields = {}) const {
    if (enabled(LogLevel::warning)) write(LogLevel::warning, message, fields);
  }
  void error(std::string_view message, std::initializer_list<LogField> fields = {}) const {
    if (enabled(LogLevel::error)) write(LogLevel::error, message, fields);
  }

 private:
  struct Target;
  std::shared_ptr<Target> target_;
  LogLevel level_ = LogLevel::off;
};

// Writes to a descriptor we share with others (stderr), never blocking: what does not fit is dropped.
// Returns how many bytes were written.
std::size_t write_without_blocking(int fd, std::string_view bytes) noexcept;

}  // namespace fairlead
