#include "gateway/failure.hpp"

#include "fairlead/json/writer.hpp"
#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"

namespace fairlead::gateway {

namespace {

// What any client may know of an error. The message of the error itself may name programs, files and hosts.
std::string_view plain_sentence(ErrorKind kind) noexcept {
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

// Limits and cancellations are the gateway's own: their messages name nothing of the server's.
std::string sentence_of(const Error& error, bool details) {
  const bool own = error.kind() == ErrorKind::resource_exhausted || error.kind() == ErrorKind::cancelled;
  return details || own ? error.message() : std::string(plain_sentence(error.kind()));
}

void write_details(json::Writer& data, const ErrorDetail& detail) {
  if (!detail.command_line.empty()) data.key("command").string(detail.command_line);
  if (!detail.search_path.empty()) data.key("path").string(detail.search_path);
  if (detail.stderr_lines.empty()) return;
  data.key("stderr").begin_array();
  for (const std::string& line : detail.stderr_lines) data.string(line);
  data.end_array();
}

}  // namespace

Error failure_of(const std::string& server, const Error& failed, bool details) {
  const Error error = with_failure_code(failed);
  const ErrorDetail& detail = error.detail();
  json::Writer data;
  data.begin_object().key("server").string(server).key("kind").string(to_string(error.kind()));
  data.key("code").string(detail.code);
  if (detail.exit_status) data.key("exitStatus").integer(*detail.exit_status);
  if (detail.exit_signal) data.key("exitSignal").integer(*detail.exit_signal);
  if (detail.after) data.key("afterMs").integer(detail.after->count());
  if (detail.retry_after) data.key("retryAfterMs").integer(detail.retry_after->count());
  if (details) write_details(data, detail);
  data.key("remedy").string(detail.remedy);
  data.end_object();
  return Error::rpc(
      rpc::kInternalError,
      "server `" + server + "`: " + std::string(to_string(error.kind())) + ": " + sentence_of(error, details),
      data.text());
}

Error refusal_of(std::int64_t rpc_code, std::string message, std::string_view code) {
  json::Writer data;
  data.begin_object().key("code").string(code).key("remedy").string(remedy_for(code)).end_object();
  return Error::rpc(rpc_code, std::move(message), std::string(data.text()));
}

}  // namespace fairlead::gateway
