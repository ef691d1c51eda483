#include "pool/server_messages.hpp"

#include "fairlead/rpc/codes.hpp"
#include "pool/upstream.hpp"

namespace fairlead::pool {

namespace {

// Returns whether a request of this method must be answered by the client of one session, which shows that
// the server keeps state per session.
bool is_client_feature(std::string_view method) {
  return method == "sampling/createMessage" || method == "elicitation/create" || method == "roots/list";
}

Task<Answer> reject_request(Request request) {
  co_return rpc::method_not_found(request.method());
}

}  // namespace

Task<Answer> handle_server_request(const std::shared_ptr<ManagedUpstream>& upstream, Request request) {
  if (!upstream) return reject_request(std::move(request));
  upstream->use.record_server_request();
  upstream->health.record_activity();
  // Many servers send roots/list at their start. Without an active call it is no sign of state per session.
  const bool harmless = request.method() == "roots/list" && upstream->active.only_leases();
  if (is_client_feature(request.method()) && !harmless && upstream->server->on_stateful) {
    // Posted, because on_stateful() may retire the upstream.
    upstream->core->loop.post(
        [server = upstream->server, evidence = "the server sent " + std::string(request.method())] {
          if (server->on_stateful) server->on_stateful(evidence);
        });
  }
  const auto& handler = upstream->core->options.handlers.on_request;
  return handler ? handler(upstream, std::move(request)) : reject_request(std::move(request));
}

void handle_server_notification(const std::shared_ptr<ManagedUpstream>& upstream, std::string_view method,
                                const json::Raw& params) {
  if (!upstream) return;
  upstream->health.record_activity();
  const auto& handler = upstream->core->options.handlers.on_notification;
  if (handler) handler(upstream, method, params);
}

}  // namespace fairlead::pool
