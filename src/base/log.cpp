#include "fairlead/base/log.hpp"

#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/log_repeats.hpp"
#include "base/printable.hpp"
#include "fairlead/base/limits.hpp"
#include "fairlead/base/redactor.hpp"

namespace fairlead {

namespace {

void append_timestamp(std::string& out) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  std::tm utc{};
  ::gmtime_r(&now.tv_sec, &utc);
  char text[40];
  const std::size_t n = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  out.append(text, n);
  std::snprintf(text, sizeof text, ".%06ldZ", now.tv_nsec / 1000);
  out += text;
}

// Escapes control characters in both formats, because they would let remote input forge log lines or control
// the terminal. Invalid UTF-8 becomes U+FFFD, so that a line is always valid text.
void append_escaped(std::string& out, std::string_view value) {
  while (!value.empty()) {
    const CodePoint first = first_code_point(value);
    if (first.length == 0 || is_unprintable(first.value)) {
      const unsigned code = first.length == 0 ? 0xfffd : static_cast<unsigned>(first.value & 0xffff);
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", code);
      out += escape;
    } else {
      out += value.substr(0, first.length);
    }
    value.remove_prefix(std::max<std::size_t>(first.length, 1));
  }
}

void append_quoted(std::string& out, std::string_view value) {
  out += '"';
  while (!value.empty()) {
    const std::size_t special = std::min(value.find_first_of("\"\\"), value.size());
    append_escaped(out, value.substr(0, special));
    if (special < value.size()) {
      out += '\\';
      out += value[special];
    }
    value.remove_prefix(std::min(special + 1, value.size()));
  }
  out += '"';
}

// Returns the beginning of `text` and a note with the full size, which includes `omitted` bytes that are not
// in `text`.
std::string truncated(std::string_view text, std::size_t omitted) {
  const std::size_t whole = text.size() + omitted;
  return std::string(utf8_prefix(text, Limits::kMaxLogFieldBytes)) + "... (truncated, " +
         std::to_string(whole) + " bytes)";
}

bool is_too_long(std::string_view text, std::size_t omitted) {
  return omitted > 0 || text.size() > Limits::kMaxLogFieldBytes;
}

bool needs_quotes(std::string_view value) {
  return value.empty() || std::ranges::any_of(value, [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte <= 0x20 || byte >= 0x7f || c == '"' || c == '\\' || c == '=';
         });
}

// Appends the value with its line breaks; its other lines are indented, so that none looks like the beginning
// of a log line.
void append_lines(std::string& out, std::string_view value) {
  while (value.ends_with('\n') || value.ends_with('\r')) value.remove_suffix(1);
  for (bool first = true; first || !value.empty(); first = false) {
    const std::size_t end = std::min(value.find('\n'), value.size());
    std::string line(value.substr(0, end));
    if (line.ends_with('\r')) line.pop_back();
    std::ranges::replace(line, '\t', ' ');
    if (!first) out += "\n    ";
    append_escaped(out, line);
    value.remove_prefix(std::min(end + 1, value.size()));
  }
}

// Returns the message and the fields as text. Values with several lines follow the first line.
std::string text_of(std::string_view message, std::span<const LogField> fields) {
  std::string line;
  std::string blocks;
  std::string text = is_too_long(message, 0) ? truncated(message, 0) : std::string(message);
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  append_escaped(line, text);
  for (const LogField& field : fields) {
    const bool too_long = is_too_long(field.value, field.omitted);
    const std::string value = too_long ? truncated(field.value, field.omitted) : field.value;
    if (value.contains('\n')) {
      ((blocks += "\n  ") += field.key) += ": ";
      append_lines(blocks, value);
      continue;
    }
    line += ' ';
    line += field.key;
    line += '=';
    too_long || needs_quotes(value) ? append_quoted(line, value) : static_cast<void>(line += value);
  }
  return line + blocks;
}

std::string text_line(LogLevel level, std::string_view text) {
  std::string line;
  append_timestamp(line);
  line += ' ';
  line += to_string(level);
  line += ' ';
  line += text;
  return line + '\n';
}

std::string text_line(LogLevel level, std::string_view message, std::span<const LogField> fields) {
  return text_line(level, text_of(message, fields));
}

std::string json_line(LogLevel level, std::string_view message, std::span<const LogField> fields) {
  std::string line = "{\"time\":\"";
  append_timestamp(line);
  line += "\",\"level\":\"";
  line += to_string(level);
  line += "\",\"message\":";
  append_quoted(line, is_too_long(message, 0) ? truncated(message, 0) : std::string(message));
  for (const LogField& field : fields) {
    line += ',';
    append_quoted(line, field.key);
    line += ':';
    if (field.literal) {
      line += field.value;
    } else if (is_too_long(field.value, field.omitted)) {
      append_quoted(line, truncated(field.value, field.omitted));
    } else {
      append_quoted(line, field.value);
    }
  }
  line += "}\n";
  return line;
}

// Returns the fields with secrets redacted. Searches only twice as many bytes of a value as are written, so
// that a secret at the point where the value is truncated is found as a whole.
std::vector<LogField> redacted_fields(std::span<const LogField> fields, const Redactor& redactor) {
  constexpr std::size_t kMaxSearchedBytes = 2 * Limits::kMaxLogFieldBytes;
  std::vector<LogField> redacted(fields.begin(), fields.end());
  for (LogField& field : redacted) {
    if (field.literal) continue;
    if (field.value.size() > kMaxSearchedBytes) {
      field.omitted += field.value.size() - kMaxSearchedBytes;
      field.value.resize(kMaxSearchedBytes);
    }
    field.value = field.omitted > 0 ? redactor.redact_excerpt(field.value) : redactor.redact(field.value);
  }
  return redacted;
}

// Writes lines to stderr. Called with the mutex of the Log::Target locked.
class StderrSink {
 public:
  explicit StderrSink(LogFormat format) : format_(format) {}

  void operator()(std::string_view line) {
    if (!end_partial_line() || !report_dropped() || !write(line)) ++dropped_lines_;
  }

 private:
  bool write(std::string_view line) {
    const std::size_t written = write_without_blocking(STDERR_FILENO, line);
    partial_line_ = partial_line_ || (written > 0 && written < line.size());
    return written == line.size();
  }

  // Terminates a partially written line, so that the next line starts on its own line.
  bool end_partial_line() {
    if (partial_line_) partial_line_ = write_without_blocking(STDERR_FILENO, "\n") == 0;
    return !partial_line_;
  }

  bool report_dropped() {
    if (dropped_lines_ == 0) return true;
    const LogField count("lines", dropped_lines_);
    constexpr std::string_view kMessage = "log lines dropped: stderr was not read";
    if (!write(format_ == LogFormat::json ? json_line(LogLevel::warning, kMessage, {&count, 1})
                                          : text_line(LogLevel::warning, kMessage, {&count, 1})))
      return false;
    dropped_lines_ = 0;
    return true;
  }

  LogFormat format_;
  std::size_t dropped_lines_ = 0;
  bool partial_line_ = false;  // the last line was written only in part
};

}  // namespace

std::string_view to_string(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::trace: return "trace";
    case LogLevel::debug: return "debug";
    case LogLevel::info: return "info";
    case LogLevel::warning: return "warning";
    case LogLevel::error: return "error";
    case LogLevel::off: return "off";
  }
  return "off";
}

LogField::LogField(std::string_view name, std::string_view text)
    : key(name), value(text.substr(0, Limits::kMaxLogFieldBytes)), omitted(text.size() - value.size()) {}

LogField LogField::json_number(std::string_view name, std::string_view json_text) {
  constexpr std::size_t kMaxNumberBytes = 32;
  const bool number = !json_text.empty() && json_text.size() <= kMaxNumberBytes &&
                      json_text.find_first_not_of("0123456789+-.eE") == std::string_view::npos;
  LogField field(name, json_text);
  field.literal = number;
  return field;
}

struct Log::Target {
  Target(LogFormat line_format, Sink line_sink) : format(line_format), sink(std::move(line_sink)) {}
  ~Target() {
    if (repeats) write_summaries(repeats->drain(LogRepeats::Time::clock::now()));
  }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  void write_text(LogLevel level, const std::string& text) {
    const auto now = LogRepeats::Time::clock::now();
    if (repeats) write_summaries(repeats->due(now));
    if (!repeats || repeats->admit(now, level, text)) sink(text_line(level, text));
  }
  // Of a repeated text with several lines, a summary has the first one.
  void write_summaries(const std::vector<LogRepeats::Summary>& summaries) {
    for (const LogRepeats::Summary& summary : summaries) sink(text_line(summary.level, summary.text));
  }

  LogFormat format;
  Sink sink;
  std::optional<LogRepeats> repeats;
  std::mutex mutex;
};

Log::Log(LogLevel level, LogFormat format, Sink sink)
    : target_(std::make_shared<Target>(format, std::move(sink))), level_(level) {}

Log Log::to_stderr(LogLevel level, LogFormat format) {
  Log log(level, format, StderrSink(format));
  if (format == LogFormat::text) log.target_->repeats.emplace();
  return log;
}

Log Log::redacting(std::shared_ptr<const SharedRedactor> redactor) const {
  Log log = *this;
  log.redactor_ = std::move(redactor);
  return log;
}

bool Log::enabled(LogLevel level) const noexcept {
  return target_ && level >= level_;
}

void Log::write(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) const {
  if (!enabled(level)) return;
  const std::shared_ptr<const Redactor> redactor = redactor_ ? redactor_->snapshot() : nullptr;
  const bool plain = !redactor || redactor->empty();
  const std::string redacted_message = plain ? std::string() : redactor->redact(message);
  const std::vector<LogField> redacted_copies =
      plain ? std::vector<LogField>() : redacted_fields({fields.begin(), fields.size()}, *redactor);
  const std::span<const LogField> written =
      plain ? std::span(fields.begin(), fields.size()) : std::span<const LogField>(redacted_copies);
  const std::string_view shown = plain ? message : std::string_view(redacted_message);
  const bool as_json = target_->format == LogFormat::json;
  const std::string line = as_json ? json_line(level, shown, written) : text_of(shown, written);
  const std::lock_guard lock(target_->mutex);
  as_json ? target_->sink(line) : target_->write_text(level, line);
}

std::size_t write_without_blocking(int fd, std::string_view bytes) noexcept {
  // O_NONBLOCK must not be set on a descriptor that other processes share. A pipe that polls writable accepts
  // PIPE_BUF bytes without blocking, so the bytes are written in pieces of that size.
  std::size_t done = 0;
  while (done < bytes.size()) {
    pollfd ready{fd, POLLOUT, 0};
    if (::poll(&ready, 1, 0) <= 0 || !(ready.revents & POLLOUT)) break;
    const ssize_t n = ::write(fd, bytes.data() + done, std::min<std::size_t>(bytes.size() - done, PIPE_BUF));
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

}  // namespace fairlead
