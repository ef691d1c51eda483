#include "pool/failure_record.hpp"

#include "fairlead/process/failure.hpp"
#include "pool/client_connection.hpp"
#include "pool/retry.hpp"
#include "pool/upstream.hpp"

namespace fairlead::pool {

Error FailureRecord::call_failed(const std::shared_ptr<UpstreamConnection>& connection, Error error) {
  const std::optional<Error> ended = connection->end_reason();
  if (connection == upstream_.connection() && ended) connection_lost(upstream_.generation(), *ended);
  error = upstream_.core->redacted(with_server_context(*connection, std::move(error)));
  // Over HTTP a call may be cut off, or be refused, without an end of the connection.
  const bool current = connection == upstream_.connection();
  if (current && (error.kind() == ErrorKind::timeout || cut_off(error))) upstream_.health.ping();
  const bool by_us =
      error.kind() == ErrorKind::closed && close_reason_ && connection != upstream_.connection();
  if (!by_us) return error;
  return Error(*close_reason_).with([&](ErrorDetail& d) { d.unsent = error.detail().unsent; });
}

// With calls of several tools under way it is unknown which of them ended the process, so it counts for
// each of them. A tool that is not to blame starts again at zero when one of its calls is answered.
void FailureRecord::count_crashes(const Error& reason) {
  if (reason.kind() != ErrorKind::process_exited) return;
  for (const std::string& tool : upstream_.active.tools())
    upstream_.server->tool_crashes.crashed(tool, reason, Clock::now());
}

// A server that exits with status 0 after having served, and with nothing under way, has not failed.
void FailureRecord::connection_lost(std::uint64_t generation, const Error& lost) {
  const std::shared_ptr<UpstreamConnection> connection = upstream_.connection();
  if (generation != upstream_.generation() || !connection) return;
  const Error reason = upstream_.core->redacted(with_server_context(*connection, lost));
  const bool polite =
      reason.detail().exit_status == 0 && upstream_.active.empty() && upstream_.use.answers() > 0;
  last_error_ = reason;
  close_reason_ = reason;  // for calls that end because this connection is closed
  if (!polite)
    upstream_.core->log().warning("server lost",
                                  {{"server", upstream_.spec().name}, {"reason", reason.to_string()}});
  count_crashes(reason);
  upstream_.lifecycle.tell(polite ? Supervisor::Event::left : Supervisor::Event::lost, reason.message());
}

void FailureRecord::unresponsive() {
  const UpstreamConnection& connection = *upstream_.connection();
  const std::string& server = upstream_.spec().name;
  const std::chrono::milliseconds waited = upstream_.spec().clocks.ping;
  last_error_ =
      connection.explained(Error::timeout("a ping to server " + server, waited), failure::unresponsive);
  close_reason_ = connection.explained(
      Error(ErrorKind::closed, "server " + server + " answered neither calls nor a ping for " +
                                   std::to_string(waited.count()) + " ms and is replaced"),
      failure::unresponsive);
  upstream_.core->log().warning("server lost", {{"server", server}, {"reason", last_error_->to_string()}});
  upstream_.lifecycle.tell(Supervisor::Event::lost, close_reason_->message());
}

}  // namespace fairlead::pool
