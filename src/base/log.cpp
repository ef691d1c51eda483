#include "fairlead/base/log.hpp"

#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>
#include <mutex>
#include <span>
#include <vector>

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

// Control characters would let remote input forge log lines or drive a terminal, so they are escaped in both
// formats. Invalid UTF-8 becomes U+FFFD, so that a line is always text.
void append_escaped(std::string& out, std::string_view value) {
  while (!value.empty()) {
    const CodePoint first = first_code_point(value);
    if (first.length == 0 || is_control(first.value)) {
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

// The beginning of a text that is longer than a log line should be, and how much is missing.
std::string truncated(std::string_view text, std::size_t omitted) {
  const std::size_t whole = text.size() + omitted;
  return std::string(utf8_prefix(text, Limits::kMaxLogFieldBytes)) + "... (truncated, " +
         std::to_string(whole) + " bytes)";
}

bool is_long(std::string_view text, std::size_t omitted) {
  return omitted > 0 || text.size() > Limits::kMaxLogFieldBytes;
}

bool needs_quotes(std::string_view value) {
  return value.empty() || std::ranges::any_of(value, [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte <= 0x20 || byte >= 0x7f || c == '"' || c == '\\' || c == '=';
         });
}

std::string text_line(LogLevel level, std::string_view message, std::span<const LogField> fields) {
  std::string line;
  append_timestamp(line);
  line += ' ';
  line += to_string(level);
  line += ' ';
  std::string text = is_long(message, 0) ? truncated(message, 0) : std::string(message);
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  append_escaped(line, text);
  for (const LogField& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    if (is_long(field.value, field.omitted)) {
      append_quoted(line, truncated(field.value, field.omitted));
    } else if (needs_quotes(field.value)) {
      append_quoted(line, field.value);
    } else {
      line += field.value;
    }
  }
  line += '\n';
  return line;
}

std::string json_line(LogLevel level, std::string_view message, std::span<const LogField> fields) {
  std::string line = "{\"time\":\"";
  append_timestamp(line);
  line += "\",\"level\":\"";
  line += to_string(level);
  line += "\",\"message\":";
  append_quoted(line, is_long(message, 0) ? truncated(message, 0) : std::string(message));
  for (const LogField& field : fields) {
    line += ',';
    append_quoted(line, field.key);
    line += ':';
    if (field.literal) {
      line += field.value;
    } else if (is_long(field.value, field.omitted)) {
      append_quoted(line, truncated(field.value, field.omitted));
    } else {
      append_quoted(line, field.value);
    }
  }
  line += "}\n";
  return line;
}

// Only what is written is searched, and a little more: a secret that the truncation cuts is found whole.
std::vector<LogField> redacted_fields(std::span<const LogField> fields, const Redactor& redactor) {
  constexpr std::size_t kSearched = 2 * Limits::kMaxLogFieldBytes;
  std::vector<LogField> redacted(fields.begin(), fields.end());
  for (LogField& field : redacted) {
    if (field.literal) continue;
    if (field.value.size() > kSearched) {
      field.omitted += field.value.size() - kSearched;
      field.value.resize(kSearched);
    }
    field.value = field.omitted > 0 ? redactor.redact_excerpt(field.value) : redactor.redact(field.value);
  }
  return redacted;
}

// Writes lines to stderr. Called under the mutex of its log.
class StderrSink {
 public:
  explicit StderrSink(LogFormat format) : format_(format) {}

  void operator()(std::string_view line) {
    if (!end_torn_line() || !report_dropped() || !write(line)) ++dropped_;
  }

 private:
  bool write(std::string_view line) {
    const std::size_t written = write_without_blocking(STDERR_FILENO, line);
    torn_ = torn_ || (written > 0 && written < line.size());
    return written == line.size();
  }

  // A line of which only a part was accepted must not run into the next one.
  bool end_torn_line() {
    if (torn_) torn_ = write_without_blocking(STDERR_FILENO, "\n") == 0;
    return !torn_;
  }

  bool report_dropped() {
    if (dropped_ == 0) return true;
    const LogField count("lines", dropped_);
    const auto line_of = format_ == LogFormat::json ? &json_line : &text_line;
    if (!write(line_of(LogLevel::warning, "log lines dropped: stderr was not read", {&count, 1})))
      return false;
    dropped_ = 0;
    return true;
  }

  LogFormat format_;
  std::size_t dropped_ = 0;
  bool torn_ = false;  // the last line was written in part
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

LogField LogField::json_number(std::string_view name, std::string_view spelled) {
  constexpr std::size_t kLongestNumber = 32;
  const bool number = !spelled.empty() && spelled.size() <= kLongestNumber &&
                      spelled.find_first_not_of("0123456789+-.eE") == std::string_view::npos;
  LogField field(name, spelled);
  field.literal = number;
  return field;
}

struct Log::Target {
  LogFormat format;
  Sink sink;
  std::mutex mutex;
};

Log::Log(LogLevel level, LogFormat format, Sink sink)
    : target_(std::make_shared<Target>(format, std::move(sink))), level_(level) {}

Log Log::to_stderr(LogLevel level, LogFormat format) {
  return Log(level, format, StderrSink(format));
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
  const std::shared_ptr<const Redactor> redactor = redactor_ ? redactor_->current() : nullptr;
  const bool plain = !redactor || redactor->empty();
  const std::string clean = plain ? std::string() : redactor->redact(message);
  const std::vector<LogField> redacted =
      plain ? std::vector<LogField>() : redacted_fields({fields.begin(), fields.size()}, *redactor);
  const std::span<const LogField> written =
      plain ? std::span(fields.begin(), fields.size()) : std::span<const LogField>(redacted);
  const auto line_of = target_->format == LogFormat::json ? &json_line : &text_line;
  const std::string line = line_of(level, plain ? message : std::string_view(clean), written);
  const std::lock_guard lock(target_->mutex);
  target_->sink(line);
}

std::size_t write_without_blocking(int fd, std::string_view bytes) noexcept {
  // We may not set O_NONBLOCK on a descriptor shared with other processes. A pipe that polls writable
  // takes PIPE_BUF bytes without blocking, so write in pieces of that size.
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
