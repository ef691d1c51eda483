#include "pool/server_messages.hpp"

#include "fairlead/rpc/codes.hpp"
#include "pool/upstream.hpp"

namespace fairlead::pool {

namespace {

bool asks_a_session(std::string_view method) {
  return method == "sampling/createMessage" || method == "elicitation/create" || method == "roots/list";
}

Task<Answer> refuse_request(Request request) {
  co_return rpc::method_not_found(request.method());
}

}  // namespace

Task<Answer> on_server_request(const std::shared_ptr<ManagedUpstream>& upstream, Request request) {
  if (!upstream) return refuse_request(std::move(request));
  upstream->use.note_question();
  upstream->health.sign_of_life();
  // Asking for roots between calls, as many do when they are started, keeps nothing of one session.
  const bool harmless = request.method() == "roots/list" && upstream->active.only_leases();
  if (asks_a_session(request.method()) && !harmless && upstream->server->keeps_state) {
    // Posted: it may take the upstream from those who share it.
    upstream->core->loop.post([server = upstream->server, why = "it sends " + std::string(request.method())] {
      if (server->keeps_state) server->keeps_state(why);
    });
  }
  const auto& handler = upstream->core->options.handlers.request;
  return handler ? handler(upstream, std::move(request)) : refuse_request(std::move(request));
}

void on_server_notification(const std::shared_ptr<ManagedUpstream>& upstream, std::string_view method,
                            const json::Raw& params) {
  if (!upstream) return;
  upstream->health.sign_of_life();
  const auto& handler = upstream->core->options.handlers.notified;
  if (handler) handler(upstream, method, params);
}

}  // namespace fairlead::pool
