#include "cli/common.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <map>

#include "base/printable.hpp"
#include "fairlead/gateway/config.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/process/subreaper.hpp"

namespace fairlead::cli {

namespace {

const std::map<std::string, LogLevel> kLevels = {{"trace", LogLevel::trace}, {"debug", LogLevel::debug},
                                                 {"info", LogLevel::info},   {"warning", LogLevel::warning},
                                                 {"error", LogLevel::error}, {"off", LogLevel::off}};

bool is_closed(int fd) {
  return ::fcntl(fd, F_GETFD) < 0;
}

// Returns whether `fd` is closed or was opened by open_closed_standard_streams().
bool was_closed(int fd, int access_of_replacement) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags < 0 || (flags & O_ACCMODE) == access_of_replacement;
}

// If `error` is from a gateway, its `data` describes why a server behind the gateway failed. Copies that
// description to the details of the error, so that it is printed as for a server that this process started.
Error with_details_from_data(Error error) {
  const std::string text = error.detail().rpc_data;
  const json::View data(text);
  if (!data.is(json::Type::object)) return error;
  return std::move(error).with([&](ErrorDetail& detail) {
    detail.command_line = data["command"].as_string().value_or("");
    detail.search_path = data["path"].as_string().value_or("");
    detail.failure_code = data["code"].as_string().value_or("");
    detail.remedy = data["remedy"].as_string().value_or("");
    const auto read_lines = [&](std::string_view key, std::vector<std::string>& lines) {
      data[key].each_element([&](json::View line) {
        lines.push_back(line.as_string().value_or(""));
        return true;
      });
    };
    read_lines("stdout", detail.stdout_lines);
    read_lines("stderr", detail.stderr_lines);
  });
}

}  // namespace

int exit_code(const Error& error) noexcept {
  switch (error.kind()) {
    case ErrorKind::remote: return kRemoteError;
    case ErrorKind::validation:
    case ErrorKind::serialize: return kUsageError;
    case ErrorKind::timeout: return kTimedOut;
    case ErrorKind::parse:
    case ErrorKind::id_mismatch:
    case ErrorKind::frame_too_large:
    case ErrorKind::invalid_content_type: return kProtocolViolated;
    default: return kNotConnected;
  }
}

int report(const Error& error) {
  const bool has_data = error.kind() == ErrorKind::remote && !error.detail().rpc_data.empty();
  const Error shown = Error(has_data ? with_details_from_data(error) : error).with([](ErrorDetail& detail) {
    if (detail.stderr_shown) detail.stderr_lines.clear();
  });
  std::fprintf(stderr, "fairlead: %s\n", printable_text(shown.to_string()).c_str());
  return exit_code(error);
}

std::optional<Error> missing_stdio_error() {
  if (was_closed(STDIN_FILENO, O_WRONLY)) return Error(ErrorKind::stdio_unavailable, "stdin is closed");
  if (was_closed(STDOUT_FILENO, O_RDONLY)) return Error(ErrorKind::stdio_unavailable, "stdout is closed");
  return std::nullopt;
}

void open_closed_standard_streams() {
  if (is_closed(STDIN_FILENO)) ::open("/dev/null", O_WRONLY);
  if (is_closed(STDOUT_FILENO)) ::open("/dev/null", O_RDONLY);
  if (is_closed(STDERR_FILENO)) ::open("/dev/null", O_WRONLY);
}

void enable_orphan_cleanup(const Log& log) {
  const Result<void> done = become_subreaper();
  if (!done) log.info("cannot become a subreaper", {{"reason", done.error().message()}});
}

void CommonOptions::add_log_to(CLI::App& command) {
  command.add_option("--log-level", log_level, "Lowest level that is logged to stderr")
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "off"}))
      ->envname("FAIRLEAD_LOG_LEVEL")
      ->capture_default_str();
  command.add_option("--log-format", log_format, "Format of log lines: text or JSON")
      ->check(CLI::IsMember({"text", "json"}))
      ->envname("FAIRLEAD_LOG_FORMAT")
      ->capture_default_str();
}

void CommonOptions::add_framing_to(CLI::App& command) {
  command.add_option("--framing", framing, "How messages are delimited on the stream")
      ->check(CLI::IsMember({"line", "length", "header"}))
      ->envname("FAIRLEAD_FRAMING")
      ->capture_default_str();
  add_frame_limit_to(command);
}

void CommonOptions::add_frame_limit_to(CLI::App& command) {
  command.add_option("--max-frame-bytes", max_frame_bytes, "Largest frame accepted [10485760]")
      ->check(CLI::Range(std::size_t{1024}, Limits::kMaxFrameCeiling))
      ->envname("FAIRLEAD_MAX_FRAME_BYTES");
  command
      .add_option("--max-noise-frames", max_noise_frames,
                  "Consecutive malformed frames after which the connection is closed; 0: no limit")
      ->envname("FAIRLEAD_MAX_NOISE_FRAMES")
      ->capture_default_str();
}

Log CommonOptions::log() const {
  return Log::to_stderr(kLevels.at(log_level), log_format == "json" ? LogFormat::json : LogFormat::text);
}

Log CommonOptions::log_to(Log::Sink sink) const {
  return Log(kLevels.at(log_level), log_format == "json" ? LogFormat::json : LogFormat::text,
             std::move(sink));
}

rpc::Framing CommonOptions::selected_framing() const {
  return rpc::framing_named(framing).value_or(rpc::Framing::line);
}

Limits CommonOptions::limits() const {
  Limits limits;
  if (max_frame_bytes > 0) limits.max_frame_bytes = max_frame_bytes;
  limits.max_noise_frames = max_noise_frames;
  return limits;
}

void WebOptions::add_to(CLI::App& command) {
  command
      .add_option("--header", headers,
                  "A header to send with every HTTP request, as \"Name: value\"; repeatable")
      ->take_all()
      ->allow_extra_args(false)
      ->check([](const std::string& header) {
        const std::size_t colon = header.find(':');
        return colon == std::string::npos || colon == 0
                   ? "`" + header + "` is not a header such as \"Name: value\""
                   : std::string();
      });
  command.add_option("--ca-file", ca_file,
                     "CA certificates (PEM) to trust in addition to those of the system");
  command.add_flag("--insecure", insecure, "Do not verify the server's certificate");
}

void WebOptions::apply_to(transport::ConnectOptions& options) const {
  for (const std::string& header : headers) {
    const std::size_t colon = header.find(':');
    const std::size_t value = header.find_first_not_of(" \t", colon + 1);
    options.headers.add(header.substr(0, colon), value == std::string::npos ? "" : header.substr(value));
  }
  options.ca_file = ca_file;
  options.verify = !insecure;
}

void add_duration(CLI::App& command, const std::string& name, std::chrono::milliseconds& value,
                  const std::string& help) {
  command
      .add_option_function<std::string>(
          name,
          [&value, name](const std::string& text) {
            const Result<std::chrono::milliseconds> parsed = parse_duration(text);
            if (!parsed)
              throw CLI::ValidationError(name,
                                         "`" + text + "` is not a duration such as 500ms, 30s, 2m or 1h");
            value = *parsed;
          },
          help)
      ->type_name("DURATION");
}

void add_timeout(CLI::App& command, std::chrono::milliseconds& value, const std::string& help) {
  command
      .add_option_function<std::string>(
          "--timeout",
          [&value](const std::string& text) {
            const Result<std::chrono::milliseconds> parsed = parse_duration(text);
            if (!parsed)
              throw CLI::ValidationError(
                  "--timeout", "`" + text + "` is not a duration such as 500ms, 30s, 2m or 1h; 0: no limit");
            value = parsed->count() == 0 ? kNoTimeout : std::min(*parsed, kNoTimeout);
          },
          help + "; 0: no limit")
      ->type_name("DURATION");
}

void add_socket_mode(CLI::App& command, std::optional<unsigned>& mode) {
  command
      .add_option_function<std::string>(
          "--socket-mode",
          [&mode](const std::string& text) {
            const Result<unsigned> parsed = gateway::parse_file_mode(text);
            if (!parsed) throw CLI::ValidationError("--socket-mode", parsed.error().message());
            mode = *parsed;
          },
          "File mode of a Unix socket [0600]")
      ->type_name("MODE")
      ->envname("FAIRLEAD_SOCKET_MODE");
}

Result<std::string> read_stdin(FileLimit limit) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count == 0) return text;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error::from_errno(ErrorKind::io, "cannot read stdin", errno);
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > limit.bytes)
      return Error(ErrorKind::validation, "stdin has more than " + std::string(limit.name) + " (" +
                                              std::to_string(limit.bytes) + ") bytes");
  }
}

Result<json::Raw> parse_json_argument(std::string_view name, const std::string& given) {
  const bool piped = given == "-";
  const std::string text = piped ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : given;
  Result<json::Raw> parsed = piped ? json::Raw::parse(text) : json::Raw::parse_optional(text);
  if (parsed) return parsed;
  return Error(ErrorKind::validation, std::string(name) + " is not JSON: " + parsed.error().message());
}

}  // namespace fairlead::cli
