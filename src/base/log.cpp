#include "fairlead/base/log.hpp"

#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>
#include <mutex>

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

// How many bytes at the front of `text` are one well-formed UTF-8 character; 0 when they are none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool beyond = (lead == 0xed && byte(1) > 0x9f) || (lead == 0xf4 && byte(1) > 0x8f);
  return overlong || beyond ? 0 : length;
}

// Control characters would let a child's output forge log lines, so they are escaped in both formats. What is
// not UTF-8 becomes U+FFFD, so that a line is always text.
void append_quoted(std::string& out, std::string_view value) {
  out += '"';
  while (!value.empty()) {
    const char c = value.front();
    const auto byte = static_cast<unsigned char>(c);
    const std::size_t length = utf8_length(value);
    if (length == 0) {
      out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      out += escape;
    } else {
      out += value.substr(0, length);
    }
    value.remove_prefix(std::max<std::size_t>(length, 1));
  }
  out += '"';
}

bool needs_quotes(std::string_view value) {
  return value.empty() || std::ranges::any_of(value, [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte <= 0x20 || byte >= 0x7f || c == '"' || c == '\\' || c == '=';
         });
}

std::string text_line(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  std::string line;
  append_timestamp(line);
  line += ' ';
  line += to_string(level);
  line += ' ';
  for (const char c : message) line += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  for (const LogField& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    if (needs_quotes(field.value)) {
      append_quoted(line, field.value);
    } else {
      line += field.value;
    }
  }
  line += '\n';
  return line;
}

std::string json_line(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  std::string line = "{\"time\":\"";
  append_timestamp(line);
  line += "\",\"level\":\"";
  line += to_string(level);
  line += "\",\"message\":";
  append_quoted(line, message);
  for (const LogField& field : fields) {
    line += ',';
    append_quoted(line, field.key);
    line += ':';
    append_quoted(line, field.value);
  }
  line += "}\n";
  return line;
}

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

struct Log::Target {
  LogFormat format;
  Sink sink;
  std::mutex mutex;
};

Log::Log(LogLevel level, LogFormat format, Sink sink)
    : target_(std::make_shared<Target>(format, std::move(sink))), level_(level) {}

Log Log::to_stderr(LogLevel level, LogFormat format) {
  return Log(level, format, [](std::string_view line) { write_without_blocking(STDERR_FILENO, line); });
}

bool Log::enabled(LogLevel level) const noexcept {
  return target_ && level >= level_;
}

void Log::write(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) const {
  if (!enabled(level)) return;
  const std::string line = target_->format == LogFormat::json ? json_line(level, message, fields)
                                                              : text_line(level, message, fields);
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
