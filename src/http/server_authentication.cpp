// ServerConnection: authentication of requests. Authentication starts when the head of a request is complete,
// so that a rejection does not wait for the body. While it is in progress, no further input of the connection
// is parsed.
#include "http/server_connection.hpp"

namespace fairlead::http {

bool ServerConnection::try_authenticate() {
  if (!core_->options.authenticator || authentication_.stage == RequestAuthentication::Stage::decided)
    return true;
  if (authentication_.stage == RequestAuthentication::Stage::none) start_authentication();
  return authentication_.stage == RequestAuthentication::Stage::decided;
}

void ServerConnection::start_authentication() {
  Request& head = reader_.head();
  head.remote = remote_;
  head.secure = core_->options.tls.has_value();
  head.principal = peer_principal_;
  // Preflight requests need no authentication: browsers send them without credentials, and the server
  // responds to them without calling a handler.
  if (HostOriginPolicy::is_preflight(head)) return apply_authentication(Authentication(peer_principal_));
  std::optional<Authentication> immediate;
  try {
    immediate = core_->options.authenticator->authenticate_now(head);
  } catch (const std::exception& problem) {
    immediate = on_authenticator_exception(problem.what());
  }
  if (immediate) return apply_authentication(std::move(*immediate));
  authentication_.stage = RequestAuthentication::Stage::waiting;
  authentication_.task.emplace(authenticate(this));
  authentication_.task->await_suspend(std::noop_coroutine()).resume();
}

// Runs the authenticator. The connection owns this task. The outcome is applied in a later callback of the
// loop, because applying it destroys the task.
Task<void> ServerConnection::authenticate(ServerConnection* self) {
  const std::shared_ptr<Authenticator> authenticator = self->core_->options.authenticator;
  std::optional<Authentication> outcome;
  try {
    Authentication decided = co_await authenticator->authenticate(self->reader_.head());
    outcome = std::move(decided);
  } catch (const std::exception& problem) {
    outcome = self->on_authenticator_exception(problem.what());
  }
  self->authentication_.outcome = std::make_unique<Authentication>(std::move(*outcome));
  self->core_->loop.post([weak = self->weak_from_this()] {
    const auto connection = weak.lock();
    if (connection) connection->finish_authentication();
  });
}

Authentication ServerConnection::on_authenticator_exception(const std::string& reason) const {
  core_->options.log.error("authenticator threw an exception", {{"what", reason}});
  return Authentication(refusal_response(500, "internal error"));
}

void ServerConnection::finish_authentication() {
  if (!pump_.is_open() || authentication_.stage != RequestAuthentication::Stage::waiting ||
      !authentication_.outcome)
    return;
  const auto self = shared_from_this();
  authentication_.task.reset();
  Authentication outcome = std::move(*authentication_.outcome);
  apply_authentication(std::move(outcome));
  pump_.run_turn([this] {
    continue_request();
    process_read_ahead();
    pump_.flush();
    return false;
  });
}

void ServerConnection::apply_authentication(Authentication outcome) {
  authentication_.stage = RequestAuthentication::Stage::decided;
  authentication_.outcome.reset();
  if (outcome.principal) {
    authentication_.principal = with_connection_address(std::move(outcome.principal));
  } else {
    authentication_.refusal = std::make_unique<Response>(std::move(outcome.refusal));
  }
}

// Returns a copy of `principal` whose client_address is the address of this connection. The copy is reused
// for later requests as long as the authenticator returns the same principal.
PrincipalPtr ServerConnection::with_connection_address(PrincipalPtr principal) {
  if (principal->client_address == remote_) return principal;
  if (principal != authenticated_principal_) {
    auto copy = std::make_shared<Principal>(*principal);
    copy->client_address = remote_;
    addressed_principal_ = std::move(copy);
    authenticated_principal_ = std::move(principal);
  }
  return addressed_principal_;
}

void ServerConnection::time_out_authentication() {
  const auto limit = std::to_string(core_->options.authentication_timeout.count());
  core_->options.log.warning("authentication timed out", {{"client", remote_}, {"limit_ms", limit}});
  const std::string why = "authentication took longer than authentication_timeout (" + limit + " ms)";
  authentication_.outcome = std::make_unique<Authentication>(refusal_response(503, why));
  finish_authentication();
}

// Rejects a request that the authenticator has rejected, and whose body has not arrived completely. It is
// unknown where the next request would begin, so this is the last response of the connection.
void ServerConnection::reject_unauthenticated_request() {
  const Headers& headers = reader_.head().headers;
  const auto host_refusal =
      core_->host_origin_policy.rejection_reason(reader_.authority(), headers, reader_.head().path());
  if (host_refusal) {
    queue_rejection(403, *host_refusal);
  } else {
    queue_final_response(*authentication_.refusal, headers.get("Origin"));
  }
  reader_.reject(authentication_.refusal->status,
                 "not authenticated");  // frees the memory of the received part of the body
  authentication_ = RequestAuthentication();
}

}  // namespace fairlead::http
