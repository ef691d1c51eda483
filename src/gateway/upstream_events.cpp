#include "gateway/upstream_events.hpp"

#include "fairlead/rpc/codes.hpp"
#include "gateway/forwarding.hpp"
#include "json/members.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::gateway {

pool::UpstreamHandlers UpstreamEvents::handlers() {
  const std::weak_ptr<UpstreamEvents> weak = weak_from_this();
  pool::UpstreamHandlers handlers;
  handlers.capabilities = [weak](const pool::Upstream& upstream) {
    const auto self = weak.lock();
    return self ? self->capabilities_for(upstream) : json::Raw();
  };
  handlers.log_level = [weak](const pool::Upstream& upstream) {
    const auto self = weak.lock();
    return self ? LogLevels::wanted(*self->sessions_, upstream) : SessionTable::kDefaultLevel;
  };
  handlers.request = [weak](std::shared_ptr<pool::Upstream> upstream, Request request) {
    return on_request(weak.lock(), std::move(upstream), std::move(request));
  };
  handlers.notified = [weak](const std::shared_ptr<pool::Upstream>& upstream, std::string_view method,
                             const json::Raw& params) {
    if (const auto self = weak.lock()) self->on_notification(upstream, method, params);
  };
  handlers.changed = [weak](const std::shared_ptr<pool::Upstream>& upstream,
                            const pool::Transition& transition) {
    if (const auto self = weak.lock()) self->on_change(upstream, transition);
  };
  handlers.kept_apart = [weak](const std::string& server) {
    if (const auto self = weak.lock()) self->watches_->renew(server, true);
  };
  return handlers;
}

void UpstreamEvents::attach(std::shared_ptr<const ServerTable> servers, std::shared_ptr<Listing> listing,
                            std::shared_ptr<LogLevels> levels, std::shared_ptr<Watches> watches) {
  servers_ = std::move(servers);
  listing_ = std::move(listing);
  levels_ = std::move(levels);
  watches_ = std::move(watches);
}

std::optional<mcp::Context> UpstreamEvents::client_for(const pool::Upstream& upstream) const {
  const pool::ClientCalls calls = upstream.client_calls();
  if (calls.caller) return std::static_pointer_cast<ForwardedCall>(calls.caller)->context;
  if (calls.count > 0 || upstream.spec().sharing == pool::Sharing::per_user) return std::nullopt;
  return sessions_->find(upstream.key());
}

json::Raw UpstreamEvents::capabilities_for(const pool::Upstream& upstream) const {
  const bool per_user = upstream.spec().sharing == pool::Sharing::per_user;
  return sessions_->capabilities([&](const mcp::Context& context) {
    const std::string_view key = per_user ? context.user() : context.session();
    return upstream.key().empty() || upstream.key() == key;
  });
}

// ---- notifications ---------------------------------------------------------------------------------------

void UpstreamEvents::on_notification(const std::shared_ptr<pool::Upstream>& upstream, std::string_view method,
                                     const json::Raw& params) {
  if (method.ends_with("/list_changed")) return on_list_changed(upstream);
  if (method == "notifications/message") return on_log(*upstream, params);
  if (method == "notifications/resources/updated") {
    const auto uri = json::View(params)["uri"].as_string(mcp::ListLimits().max_uri_bytes);
    return uri ? watches_->tell(*upstream, *uri) : drop(*upstream, method, "uri", "max_uri_bytes");
  }
  if (method == "notifications/elicitation/complete") return on_url_completed(*upstream, params);
  log_.debug("notification for nobody", {{"server", upstream->spec().name}, {"method", std::string(method)}});
}

void UpstreamEvents::drop(const pool::Upstream& upstream, std::string_view method, std::string_view member,
                          std::string_view limit) const {
  log_.debug("notification dropped",
             {{"server", upstream.spec().name},
              {"method", std::string(method)},
              {"reason", std::string(member) + " is not a string within " + std::string(limit)}});
}

void UpstreamEvents::on_list_changed(const std::shared_ptr<pool::Upstream>& upstream) {
  const auto entry = servers_->find(upstream->spec().name);
  if (!entry) return;
  return upstream->key().empty() ? listing_->refresh(entry, upstream)
                                 : listing_->refresh_own(entry, upstream);
}

void UpstreamEvents::on_log(const pool::Upstream& upstream, const json::Raw& params) {
  constexpr std::size_t kMaxLevelBytes = 100;
  const json::Members members(json::View(params), {"level", "data"});
  const std::string named = members["level"].as_string(kMaxLevelBytes).value_or("");
  const auto level = mcp::logging_level_named(named);
  log_.debug("server says", {{"server", upstream.spec().name},
                             {"level", named},
                             {"data", std::string(members["data"].text().substr(0, 1000))}});
  const std::optional<mcp::Context> context = client_for(upstream);
  if (!context || !level) return;
  const std::optional<mcp::LoggingLevel> wanted = context->log_level();
  if (wanted && *level >= *wanted) tell(*context, "notifications/message", params);
}

void UpstreamEvents::tell(const mcp::Context& client, std::string_view method,
                          const json::Raw& params) const {
  const Result<void> sent = link_to(client).notify(method, params);
  if (!sent)
    log_.debug("notification not sent",
               {{"method", std::string(method)}, {"reason", sent.error().message()}});
}

void UpstreamEvents::on_url_completed(const pool::Upstream& upstream, const json::Raw& params) {
  const std::string& server = upstream.spec().name;
  const auto id = json::View(params)["elicitationId"].as_string(mcp::kMaxElicitationIdBytes);
  if (!id)
    return drop(upstream, "notifications/elicitation/complete", "elicitationId", "max_elicitation_id_bytes");
  const std::string& elicitation = *id;
  const bool per_user = upstream.spec().sharing == pool::Sharing::per_user;
  for (const std::string& session : sessions_->sessions_at_url(server, elicitation)) {
    const std::optional<mcp::Context> context = sessions_->find(session);
    // Two processes of one server may have the same ids.
    const bool another = context && !upstream.key().empty() &&
                         (per_user ? context->user() : context->session()) != upstream.key();
    if (another) continue;
    sessions_->forget_url(server, elicitation, session);
    if (context) tell(*context, "notifications/elicitation/complete", params);
  }
}

// ---- requests --------------------------------------------------------------------------------------------

Error UpstreamEvents::no_client(const std::string& server, std::string_view method) const {
  log_.warning("a server's request cannot be attributed",
               {{"server", server}, {"method", std::string(method)}});
  return Error::rpc(
      rpc::kInternalError,
      "It cannot be told which client this is for: no call or calls of several clients are under "
      "way. Share this server per session (sharing = \"per_session\")");
}

Task<Answer> UpstreamEvents::on_request(std::shared_ptr<UpstreamEvents> self,
                                        std::shared_ptr<pool::Upstream> upstream, Request request) {
  const std::string_view capability = capability_for(request.method());
  if (!self || capability.empty()) co_return rpc::method_not_found(request.method());
  const std::optional<mcp::Context> found = self->client_for(*upstream);
  const std::string server = upstream->spec().name;
  if (!found) co_return self->no_client(server, request.method());
  const mcp::Context context = *found;
  if (mcp::is_modern(context.revision())) {
    co_return Error::rpc(rpc::kInternalError, "The client speaks revision " +
                                                  std::string(to_string(context.revision())) +
                                                  ", which has no requests from servers");
  }
  if (context.client_capabilities()[capability].absent()) co_return rpc::method_not_found(request.method());
  if (const auto id = request.args()["elicitationId"].as_string(mcp::kMaxElicitationIdBytes))
    self->sessions_->note_url(server, *id, context.session());
  const ClientLink client = self->link_to(context);
  Task<Result<json::Raw>> asking =
      client.ask(std::string(request.method()), request.params(), request.stop());
  Answer answer = co_await asking;
  co_return answer;
}

// ---- state -----------------------------------------------------------------------------------------------

void UpstreamEvents::on_change(const std::shared_ptr<pool::Upstream>& upstream,
                               const pool::Transition& transition) {
  log_.info("server", {{"server", upstream->spec().name},
                       {"state", std::string(to_string(transition.to))},
                       {"was", std::string(to_string(transition.from))},
                       {"generation", transition.generation},
                       {"reason", transition.reason}});
  const bool began = transition.to == pool::State::ready;
  if (transition.to == pool::State::starting) {
    levels_->started(upstream);
  } else if (!began && transition.to != pool::State::handshaking) {
    levels_->ended(upstream);
  }
  if (!began && transition.from != pool::State::ready) return;
  // Posted: the pool is in the midst of its own change.
  loop_.post([weak = weak_from_this(), upstream, began, anew = began && transition.generation > 1] {
    if (const auto self = weak.lock()) self->follow_change(upstream, began, anew);
  });
}

void UpstreamEvents::follow_change(const std::shared_ptr<pool::Upstream>& upstream, bool began, bool anew) {
  const auto entry = servers_->find(upstream->spec().name);
  if (began) levels_->adjust();
  if (entry && began && !upstream->key().empty()) listing_->refresh_own(entry, upstream);
  if (entry && anew && upstream->key().empty()) listing_->refresh(entry, upstream);
  watches_->renew(upstream->spec().name);
}

}  // namespace fairlead::gateway
