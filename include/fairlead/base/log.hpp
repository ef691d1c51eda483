// Log: structured logging as text or as JSON lines. Logging never blocks: a line that stderr does not accept
// at once is dropped, and the number of dropped lines is logged before the next line that it accepts.
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

// A named value of a log line. JSON lines contain numbers and booleans as such, all other values as strings.
// A value longer than Limits::kMaxLogFieldBytes is truncated when it is written.
struct LogField {
  LogField(std::string_view name, std::string text) : key(name), value(std::move(text)) {}
  LogField(std::string_view name, const char* text) : key(name), value(text) {}
  LogField(std::string_view name, std::string_view text);  // copies only the part that will be written
  LogField(std::string_view name, bool flag) : key(name), value(flag ? "true" : "false"), literal(true) {}
  template <std::integral T>
  LogField(std::string_view name, T number) : key(name), value(std::to_string(number)), literal(true) {}
  // For a JSON-RPC id or a number, given as JSON text. JSON lines contain a number if the text is a number of
  // up to 32 bytes, otherwise a string.
  static LogField json_number(std::string_view name, std::string_view json_text);

  std::string_view key;
  std::string value;
  std::size_t omitted = 0;  // bytes at the end of the value that were not copied
  bool literal = false;     // `value` is a JSON number, true or false
};

// Cheap to copy; copies write to the same sink. Thread-safe.
class Log {
 public:
  // Receives one complete line per call, including the final '\n'; a line as text is followed by indented
  // lines for values with line breaks. Calls are serialized by a mutex.
  using Sink = std::function<void(std::string_view line)>;

  Log() noexcept = default;  // discards everything
  Log(LogLevel level, LogFormat format, Sink sink);
  // Lines as text are for people: of a warning or an error that is repeated, only the first line is written,
  // and later how often it was repeated.
  static Log to_stderr(LogLevel level, LogFormat format = LogFormat::text);

  // Returns a copy of this log that redacts the secrets of `redactor` in messages and values.
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

// Writes to a descriptor that is shared with other processes, such as stderr, without ever blocking. Bytes
// that the descriptor does not accept at once are dropped. Returns the number of bytes written.
std::size_t write_without_blocking(int fd, std::string_view bytes) noexcept;

}  // namespace fairlead
