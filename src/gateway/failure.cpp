#include "gateway/failure.hpp"

#include "fairlead/json/writer.hpp"
#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"

namespace fairlead::gateway {

Error failure_of(const std::string& server, const Error& failed) {
  const Error error = with_failure_code(failed);
  const ErrorDetail& detail = error.detail();
  json::Writer data;
  data.begin_object().key("server").string(server).key("kind").string(to_string(error.kind()));
  data.key("code").string(detail.code);
  if (detail.exit_status) data.key("exitStatus").integer(*detail.exit_status);
  if (detail.exit_signal) data.key("exitSignal").integer(*detail.exit_signal);
  if (detail.after) data.key("afterMs").integer(detail.after->count());
  if (detail.retry_after) data.key("retryAfterMs").integer(detail.retry_after->count());
  if (!detail.command_line.empty()) data.key("command").string(detail.command_line);
  if (!detail.search_path.empty()) data.key("path").string(detail.search_path);
  if (!detail.stderr_lines.empty()) {
    data.key("stderr").begin_array();
    for (const std::string& line : detail.stderr_lines) data.string(line);
    data.end_array();
  }
  data.key("remedy").string(detail.remedy);
  data.end_object();
  return Error::rpc(
      rpc::kInternalError,
      "server `" + server + "`: " + std::string(to_string(error.kind())) + ": " + error.message(),
      data.text());
}

Error refusal_of(std::int64_t rpc_code, std::string message, std::string_view code) {
  json::Writer data;
  data.begin_object().key("code").string(code).key("remedy").string(remedy_for(code)).end_object();
  return Error::rpc(rpc_code, std::move(message), std::string(data.text()));
}

}  // namespace fairlead::gateway
