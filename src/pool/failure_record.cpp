#include "pool/failure_record.hpp"

#include "fairlead/process/failure.hpp"
#include "pool/mcp_client_connection.hpp"
#include "pool/retry.hpp"
#include "pool/upstream.hpp"

namespace fairlead::pool {

Error FailureRecord::on_call_failed(const std::shared_ptr<UpstreamConnection>& connection, Error error) {
  const std::optional<Error> ended = connection->end_reason();
  if (connection == upstream_.connection() && ended) on_connection_lost(upstream_.generation(), *ended);
  error = upstream_.core->redacted(with_server_context(*connection, std::move(error)));
  // Over HTTP a call can lose its TCP connection or be rejected although the MCP session continues. The ping
  // finds out whether it does.
  const bool current = connection == upstream_.connection();
  if (current && (error.kind() == ErrorKind::timeout || is_connection_loss(error))) upstream_.health.ping();
  const bool closed_by_pool =
      error.kind() == ErrorKind::closed && close_reason_ && connection != upstream_.connection();
  if (!closed_by_pool) return error;
  return Error(*close_reason_).with([&](ErrorDetail& d) { d.unsent = error.detail().unsent; });
}

// If calls of several tools were active, it is unknown which tool ended the process, so the crash counts for
// each of them. The count of a tool is reset when one of its calls is answered.
void FailureRecord::record_tool_crashes(const Error& reason) {
  if (reason.kind() != ErrorKind::process_exited) return;
  for (const std::string& tool : upstream_.active.called_tools())
    upstream_.server->tool_crashes.on_crash(tool, reason, Clock::now());
}

// A server that exits with status 0, after having answered calls and with no active call, has not failed.
void FailureRecord::on_connection_lost(std::uint64_t generation, const Error& lost) {
  const std::shared_ptr<UpstreamConnection> connection = upstream_.connection();
  if (generation != upstream_.generation() || !connection) return;
  const Error reason = upstream_.core->redacted(with_server_context(*connection, lost));
  const bool clean_exit =
      reason.detail().exit_status == 0 && upstream_.active.empty() && upstream_.use.response_count() > 0;
  last_error_ = reason;
  close_reason_ = reason;  // the error of calls that fail because this connection is closed
  if (!clean_exit)
    upstream_.core->log().warning("connection to server lost",
                                  {{"server", upstream_.spec().name}, {"reason", reason.to_string()}});
  record_tool_crashes(reason);
  upstream_.lifecycle.dispatch(clean_exit ? Supervisor::Event::exited : Supervisor::Event::connection_lost,
                               reason.message());
}

void FailureRecord::on_unresponsive() {
  const UpstreamConnection& connection = *upstream_.connection();
  const std::string& server = upstream_.spec().name;
  const std::chrono::milliseconds waited = upstream_.spec().clocks.ping;
  last_error_ = connection.with_error_context(Error::timeout("a ping to server " + server, waited),
                                              failure::unresponsive);
  close_reason_ = connection.with_error_context(
      Error(ErrorKind::closed, "server " + server + " answered neither calls nor a ping for " +
                                   std::to_string(waited.count()) + " ms and is replaced"),
      failure::unresponsive);
  upstream_.core->log().warning("connection to server lost",
                                {{"server", server}, {"reason", last_error_->to_string()}});
  upstream_.lifecycle.dispatch(Supervisor::Event::connection_lost, close_reason_->message());
}

}  // namespace fairlead::pool
