// Log: structured lines for people (text) or machines (JSON lines). Logging never blocks: a line that stderr
// does not accept at once is dropped, and the next line that it accepts says how many were.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace fairlead {

class SharedRedactor;

enum class LogLevel : std::uint8_t { trace, debug, info, warning, error, off };
enum class LogFormat : std::uint8_t { text, json };

std::string_view to_string(LogLevel level) noexcept;

// A named value of a log line. JSON lines write numbers and booleans as such and everything else as a string.
// A value over Limits::kMaxLogFieldBytes is truncated when it is written.
struct LogField {
  LogField(std::string_view name, std::string text) : key(name), value(std::move(text)) {}
  LogField(std::string_view name, const char* text) : key(name), value(text) {}
  LogField(std::string_view name, std::string_view text);  // copies no more than is written
  LogField(std::string_view name, bool flag) : key(name), value(flag ? "true" : "false"), literal(true) {}
  template <std::integral T>
  LogField(std::string_view name, T number) : key(name), value(std::to_string(number)), literal(true) {}
  // An id or a number as it is spelled in JSON: written as a number if it is a short one.
  static LogField json_number(std::string_view name, std::string_view spelled);

  std::string_view key;
  std::string value;
  std::size_t omitted = 0;  // bytes of the value that were not copied
  bool literal = false;     // `value` is a JSON number, true or false
};

// Cheap to copy; copies write to the same place. Safe from any thread.
class Log {
 public:
  // Receives whole lines, each ended by '\n'.
  using Sink = std::function<void(std::string_view line)>;

  Log() noexcept = default;  // says nothing
  Log(LogLevel level, LogFormat format, Sink sink);
  static Log to_stderr(LogLevel level, LogFormat format = LogFormat::text);

  // This log with the secrets of `redactor` replaced in messages and values.
  Log redacting(std::shared_ptr<const SharedRedactor> redactor) const;

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
  std::shared_ptr<const SharedRedactor> redactor_;
  LogLevel level_ = LogLevel::off;
};

// Writes to a descriptor we share with others (stderr), never blocking: what does not fit is dropped.
// Returns how many bytes were written.
std::size_t write_without_blocking(int fd, std::string_view bytes) noexcept;

}  // namespace fairlead
