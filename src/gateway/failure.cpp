#include "gateway/failure.hpp"

#include "fairlead/json/writer.hpp"
#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"

namespace fairlead::gateway {

namespace {

// Returns a description for clients that receive no details. The message of the error itself can contain the
// names of programs, files and hosts.
std::string_view public_description(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::spawn: return "it could not be started";
    case ErrorKind::stdio_unavailable:
    case ErrorKind::io: return "reading from it or writing to it failed";
    case ErrorKind::serialize: return "the request could not be sent to it";
    case ErrorKind::parse:
    case ErrorKind::id_mismatch: return "it sent something that is not JSON-RPC";
    case ErrorKind::remote: return "it answered with an error";
    case ErrorKind::timeout: return "it did not answer in time";
    case ErrorKind::cancelled: return "the call was cancelled";
    case ErrorKind::process_exited: return "its process ended";
    case ErrorKind::closed: return "the connection to it was closed";
    case ErrorKind::frame_too_large: return "a message was larger than max_frame_bytes";
    case ErrorKind::resource_exhausted: return "a limit of the gateway was reached";
    case ErrorKind::connection_failed: return "it could not be reached";
    case ErrorKind::invalid_content_type: return "it answered with something that is not MCP";
    case ErrorKind::http_status: return "it answered with an HTTP error status";
    case ErrorKind::authorization: return "it refused the credentials of the gateway";
    case ErrorKind::validation: return "its configuration or its answer is not valid";
  }
  return "it failed";
}

// Every client may see the messages of errors about limits and cancellation: these errors come from the
// gateway itself, and their messages contain nothing about the server.
std::string description_of(const Error& error, bool with_details) {
  const bool is_own_error =
      error.kind() == ErrorKind::resource_exhausted || error.kind() == ErrorKind::cancelled;
  return with_details || is_own_error ? error.message() : std::string(public_description(error.kind()));
}

void write_lines(json::Writer& data, std::string_view key, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  data.key(key).begin_array();
  for (const std::string& line : lines) data.string(line);
  data.end_array();
}

void write_details(json::Writer& data, const ErrorDetail& detail) {
  if (!detail.command_line.empty()) data.key("command").string(detail.command_line);
  if (!detail.search_path.empty()) data.key("path").string(detail.search_path);
  write_lines(data, "stdout", detail.stdout_lines);
  write_lines(data, "stderr", detail.stderr_lines);
}

}  // namespace

Error server_failure_error(const std::string& server, const Error& cause, bool with_details) {
  const Error error = with_failure_code(cause);
  const ErrorDetail& detail = error.detail();
  json::Writer data;
  data.begin_object().key("server").string(server).key("kind").string(to_string(error.kind()));
  data.key("code").string(detail.failure_code);
  if (detail.exit_status) data.key("exitStatus").integer(*detail.exit_status);
  if (detail.exit_signal) data.key("exitSignal").integer(*detail.exit_signal);
  if (detail.waited) data.key("afterMs").integer(detail.waited->count());
  if (detail.retry_after) data.key("retryAfterMs").integer(detail.retry_after->count());
  if (with_details) write_details(data, detail);
  data.key("remedy").string(detail.remedy);
  data.end_object();
  return Error::rpc(rpc::kInternalError,
                    "server `" + server + "`: " + std::string(to_string(error.kind())) + ": " +
                        description_of(error, with_details),
                    data.text());
}

Error refusal_error(std::int64_t rpc_code, std::string message, std::string_view failure_code) {
  json::Writer data;
  data.begin_object()
      .key("code")
      .string(failure_code)
      .key("remedy")
      .string(remedy_for(failure_code))
      .end_object();
  return Error::rpc(rpc_code, std::move(message), std::string(data.text()));
}

}  // namespace fairlead::gateway
