#include "fairlead/base/error.hpp"

#include <cstring>

namespace fairlead {

std::string_view to_string(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::spawn: return "spawn failed";
    case ErrorKind::stdio_unavailable: return "stdio not available";
    case ErrorKind::io: return "i/o error";
    case ErrorKind::serialize: return "cannot serialize";
    case ErrorKind::parse: return "parse error";
    case ErrorKind::id_mismatch: return "id mismatch";
    case ErrorKind::remote: return "remote error";
    case ErrorKind::timeout: return "timed out";
    case ErrorKind::cancelled: return "cancelled";
    case ErrorKind::process_exited: return "process exited";
    case ErrorKind::closed: return "connection closed";
    case ErrorKind::frame_too_large: return "frame too large";
    case ErrorKind::resource_exhausted: return "resource exhausted";
    case ErrorKind::connection_failed: return "connection failed";
    case ErrorKind::invalid_content_type: return "invalid content type";
    case ErrorKind::http_status: return "http status";
    case ErrorKind::authorization: return "not authorized";
    case ErrorKind::validation: return "invalid";
  }
  return "unknown";
}

const ErrorDetail& Error::detail() const noexcept {
  static const ErrorDetail none;
  return detail_ ? *detail_ : none;
}

// Copies of an error share their detail, so it is copied before it is changed (copy on write).
ErrorDetail& Error::editable_detail() {
  if (!detail_) detail_ = std::make_shared<ErrorDetail>();
  if (detail_.use_count() > 1) detail_ = std::make_shared<ErrorDetail>(*detail_);
  return *detail_;
}

std::string Error::to_string() const {
  std::string text(fairlead::to_string(kind_));
  text += ": ";
  text += message_;
  const ErrorDetail& details = detail();
  const auto line = [&](std::string_view label, const std::string& value) {
    if (!value.empty()) ((text += '\n') += label) += value;
  };
  line("command: ", details.command_line);
  line("PATH: ", details.search_path);
  const auto block = [&](std::string_view label, const std::vector<std::string>& lines) {
    if (!lines.empty()) (text += '\n') += label;
    for (const std::string& printed : lines) text += "\n  " + printed;
  };
  block("its stdout (not JSON-RPC):", details.stdout_lines);
  block("its stderr:", details.stderr_lines);
  line("code: ", details.failure_code);
  line("remedy: ", details.remedy);
  return text;
}

Error Error::from_errno(ErrorKind kind, std::string_view operation, int os_error) {
  char buffer[128];
  std::string message(operation);
  message += ": ";
  message += strerror_r(os_error, buffer, sizeof buffer);
  return Error(kind, std::move(message)).with([&](ErrorDetail& d) { d.os_error = os_error; });
}

Error Error::timeout(std::string_view operation, std::chrono::milliseconds waited) {
  std::string message(operation);
  message += " got no answer within " + std::to_string(waited.count()) + " ms";
  return Error(ErrorKind::timeout, std::move(message)).with([&](ErrorDetail& d) { d.waited = waited; });
}

Error Error::rpc(std::int64_t code, std::string message, std::string data) {
  return Error(ErrorKind::remote, std::move(message)).with([&](ErrorDetail& d) {
    d.rpc_code = code;
    d.rpc_data = std::move(data);
  });
}

}  // namespace fairlead
