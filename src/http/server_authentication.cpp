// Authentication of a ServerConnection's requests: begun when the head of a request is complete, so that a
// refusal does not wait for the body. While it waits, nothing more of the connection is parsed.
#include "http/server_connection.hpp"

namespace fairlead::http {

// Whether the request that is being read has been decided upon; begins it where it has not.
bool ServerConnection::is_decided() {
  if (!core_->options.authenticator || admission_.stage == Admission::Stage::decided) return true;
  if (admission_.stage == Admission::Stage::none) begin_authentication();
  return admission_.stage == Admission::Stage::decided;
}

void ServerConnection::begin_authentication() {
  Request& head = reader_.head();
  head.remote = remote_;
  head.secure = core_->options.tls.has_value();
  head.principal = peer_;
  // A browser sends no credentials with it, and no handler sees it.
  if (Gate::is_preflight(head)) return decide(Authentication(peer_));
  std::optional<Authentication> at_once;
  try {
    at_once = core_->options.authenticator->authenticate_now(head);
  } catch (const std::exception& problem) {
    at_once = failed_authentication(problem.what());
  }
  if (at_once) return decide(std::move(*at_once));
  admission_.stage = Admission::Stage::waiting;
  admission_.task.emplace(authenticate(this));
  admission_.task->await_suspend(std::noop_coroutine()).resume();
}

// The connection owns the task. What comes of it is taken up in a callback of its own: that destroys the
// task.
Task<void> ServerConnection::authenticate(ServerConnection* self) {
  const std::shared_ptr<Authenticator> authenticator = self->core_->options.authenticator;
  std::optional<Authentication> outcome;
  try {
    Task<Authentication> asking = authenticator->authenticate(self->reader_.head());
    Authentication decided = co_await asking;
    outcome = std::move(decided);
  } catch (const std::exception& problem) {
    outcome = self->failed_authentication(problem.what());
  }
  self->admission_.outcome = std::move(outcome);
  self->core_->loop.post([weak = self->weak_from_this()] {
    const auto connection = weak.lock();
    if (connection) connection->finish_authentication();
  });
}

Authentication ServerConnection::failed_authentication(const std::string& what) const {
  core_->options.log.error("an authenticator threw", {{"what", what}});
  return Authentication(refusal_response(500, "internal error"));
}

void ServerConnection::finish_authentication() {
  if (!pump_.open() || admission_.stage != Admission::Stage::waiting || !admission_.outcome) return;
  const auto self = shared_from_this();
  admission_.task.reset();
  Authentication outcome = std::move(*admission_.outcome);
  decide(std::move(outcome));
  pump_.run_turn([this] {
    after_feed();
    take_pending();
    pump_.flush();
    return false;
  });
}

void ServerConnection::decide(Authentication outcome) {
  admission_.stage = Admission::Stage::decided;
  admission_.outcome.reset();
  if (outcome.principal) {
    admission_.principal = with_address(std::move(outcome.principal));
  } else {
    admission_.refusal = std::move(outcome.refusal);
  }
}

// Made once for a connection whose requests all come from the same principal.
PrincipalPtr ServerConnection::with_address(PrincipalPtr given) {
  if (given->client_address == remote_) return given;
  if (given != given_) {
    auto copy = std::make_shared<Principal>(*given);
    copy->client_address = remote_;
    addressed_ = std::move(copy);
    given_ = std::move(given);
  }
  return addressed_;
}

void ServerConnection::time_out_authentication() {
  const auto limit = std::to_string(core_->options.authentication_timeout.count());
  core_->options.log.warning("authentication timed out", {{"client", remote_}, {"limit_ms", limit}});
  const std::string why = "authentication took longer than authentication_timeout (" + limit + " ms)";
  admission_.outcome = Authentication(refusal_response(503, why));
  finish_authentication();
}

// Before the body has come. Where the next request would begin is not known then, so this is the last answer.
void ServerConnection::refuse_unread() {
  const Headers& headers = reader_.head().headers;
  const auto host_refusal = core_->gate.refuses(reader_.authority(), headers);
  if (host_refusal) {
    refuse(403, *host_refusal);
  } else {
    put_last(*admission_.refusal, headers.get("Origin"));
  }
  reader_.refuse(admission_.refusal->status, "not authenticated");  // frees what there is of the body
  admission_ = Admission();
}

}  // namespace fairlead::http
