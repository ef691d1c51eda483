#include "gateway/upstream_events.hpp"

#include "fairlead/rpc/codes.hpp"
#include "gateway/forwarding.hpp"
#include "json/members.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::gateway {

namespace {

// Returns whether this is the unshared upstream of the client.
bool serves(const pool::Upstream& upstream, const mcp::Context& client) {
  return upstream.key() ==
         pool::unshared_upstream_key(upstream.spec().sharing, client.session(), client.user());
}

}  // namespace

pool::UpstreamHandlers UpstreamEvents::handlers() {
  const std::weak_ptr<UpstreamEvents> weak = weak_from_this();
  pool::UpstreamHandlers handlers;
  handlers.capabilities_for = [weak](const pool::Upstream& upstream) {
    const auto self = weak.lock();
    return self ? self->capabilities_for(upstream) : json::Raw();
  };
  handlers.log_level_for = [weak](const pool::Upstream& upstream) {
    const auto self = weak.lock();
    return self ? UpstreamLogLevels::wanted_level(*self->sessions_, upstream)
                : SessionTable::kDefaultLogLevel;
  };
  handlers.on_request = [weak](std::shared_ptr<pool::Upstream> upstream, Request request) {
    return handle_request(weak.lock(), std::move(upstream), std::move(request));
  };
  handlers.on_notification = [weak](const std::shared_ptr<pool::Upstream>& upstream, std::string_view method,
                                    const json::Raw& params) {
    if (const auto self = weak.lock()) self->handle_notification(upstream, method, params);
  };
  handlers.on_state_changed = [weak](const std::shared_ptr<pool::Upstream>& upstream,
                                     const pool::Transition& transition) {
    if (const auto self = weak.lock()) self->handle_transition(upstream, transition);
  };
  handlers.on_server_unshared = [weak](const std::string& server) {
    if (const auto self = weak.lock()) self->subscription_hub_->renew(server, true);
  };
  return handlers;
}

void UpstreamEvents::set_components(std::shared_ptr<const ServerTable> servers,
                                    std::shared_ptr<ListFetcher> list_fetcher,
                                    std::shared_ptr<UpstreamLogLevels> log_levels,
                                    std::shared_ptr<SubscriptionHub> subscription_hub) {
  servers_ = std::move(servers);
  list_fetcher_ = std::move(list_fetcher);
  log_levels_ = std::move(log_levels);
  subscription_hub_ = std::move(subscription_hub);
}

std::optional<mcp::Context> UpstreamEvents::client_for(const pool::Upstream& upstream) const {
  const pool::ClientCallSummary calls = upstream.client_call_summary();
  if (calls.call_context) return std::static_pointer_cast<ForwardedCall>(calls.call_context)->context;
  if (calls.count > 0 || upstream.spec().sharing == pool::Sharing::per_user) return std::nullopt;
  return sessions_->find_client(upstream.key());
}

json::Raw UpstreamEvents::capabilities_for(const pool::Upstream& upstream) const {
  return sessions_->combined_capabilities(
      [&](const mcp::Context& context) { return upstream.key().empty() || serves(upstream, context); });
}

// ---- notifications ---------------------------------------------------------------------------------------

void UpstreamEvents::handle_notification(const std::shared_ptr<pool::Upstream>& upstream,
                                         std::string_view method, const json::Raw& params) {
  if (method.ends_with("/list_changed")) return handle_list_changed(upstream);
  if (method == "notifications/message") return handle_log_message(*upstream, params);
  if (method == "notifications/resources/updated") {
    const auto uri = json::View(params)["uri"].as_string(mcp::ListLimits().max_uri_bytes);
    return uri ? subscription_hub_->handle_resource_updated(*upstream, *uri)
               : log_dropped_notification(*upstream, method, "uri", "max_uri_bytes");
  }
  if (method == "notifications/elicitation/complete") return handle_elicitation_complete(*upstream, params);
  log_.debug("notification ignored", {{"server", upstream->spec().name}, {"method", std::string(method)}});
}

void UpstreamEvents::log_dropped_notification(const pool::Upstream& upstream, std::string_view method,
                                              std::string_view member, std::string_view limit) const {
  log_.debug("notification dropped",
             {{"server", upstream.spec().name},
              {"method", std::string(method)},
              {"reason", std::string(member) + " is not a string within " + std::string(limit)}});
}

void UpstreamEvents::handle_list_changed(const std::shared_ptr<pool::Upstream>& upstream) {
  const auto entry = servers_->find(upstream->spec().name);
  if (!entry) return;
  return upstream->key().empty() ? list_fetcher_->refresh_shared(entry, upstream)
                                 : list_fetcher_->refresh_unshared(entry, upstream);
}

void UpstreamEvents::handle_log_message(const pool::Upstream& upstream, const json::Raw& params) {
  constexpr std::size_t kMaxLevelBytes = 100;
  const json::Members members(json::View(params), {"level", "data"});
  const std::string level_name = members["level"].as_string(kMaxLevelBytes).value_or("");
  const auto level = mcp::logging_level_named(level_name);
  log_.debug("server log message",
             {{"server", upstream.spec().name}, {"level", level_name}, {"data", members["data"].text()}});
  const std::optional<mcp::Context> context = client_for(upstream);
  if (!context || !level) return;
  const std::optional<mcp::LoggingLevel> min_level = context->log_level();
  if (min_level && *level >= *min_level) notify(*context, "notifications/message", params);
}

void UpstreamEvents::notify(const mcp::Context& client, std::string_view method,
                            const json::Raw& params) const {
  const Result<void> sent = channel_to(client).notify(method, params);
  if (!sent)
    log_.debug("notification not sent",
               {{"method", std::string(method)}, {"reason", sent.error().message()}});
}

void UpstreamEvents::handle_elicitation_complete(const pool::Upstream& upstream, const json::Raw& params) {
  const std::string& server = upstream.spec().name;
  const auto id = json::View(params)["elicitationId"].as_string(mcp::kMaxElicitationIdBytes);
  if (!id)
    return log_dropped_notification(upstream, "notifications/elicitation/complete", "elicitationId",
                                    "max_elicitation_id_bytes");
  const std::string& elicitation = *id;
  for (const std::string& session : sessions_->sessions_of_url_elicitation(server, elicitation)) {
    const std::optional<mcp::Context> context = sessions_->find_client(session);
    // Two processes of one server may use the same ids: skip the sessions that another process serves.
    const bool of_other_upstream = context && !upstream.key().empty() && !serves(upstream, *context);
    if (of_other_upstream) continue;
    sessions_->remove_url_elicitation(server, elicitation, session);
    if (context) notify(*context, "notifications/elicitation/complete", params);
  }
}

// ---- requests --------------------------------------------------------------------------------------------

Error UpstreamEvents::no_client_error(const std::string& server, std::string_view method) const {
  log_.warning("no client for the request of a server",
               {{"server", server}, {"method", std::string(method)}});
  return Error::rpc(
      rpc::kInternalError,
      "Cannot determine the client of this request: no call, or calls of several clients, are in "
      "progress. Set sharing = \"per_session\" for this server");
}

Task<Answer> UpstreamEvents::handle_request(std::shared_ptr<UpstreamEvents> self,
                                            std::shared_ptr<pool::Upstream> upstream, Request request) {
  const std::string_view capability = client_capability_for(request.method());
  if (!self || capability.empty()) co_return rpc::method_not_found(request.method());
  const std::optional<mcp::Context> found = self->client_for(*upstream);
  const std::string server = upstream->spec().name;
  if (!found) co_return self->no_client_error(server, request.method());
  const mcp::Context context = *found;
  if (mcp::is_modern(context.revision())) {
    co_return Error::rpc(rpc::kInternalError, "The client uses revision " +
                                                  std::string(to_string(context.revision())) +
                                                  ", which has no requests from servers");
  }
  if (context.client_capabilities()[capability].absent()) co_return rpc::method_not_found(request.method());
  if (const auto id = request.params_view()["elicitationId"].as_string(mcp::kMaxElicitationIdBytes))
    self->sessions_->add_url_elicitation(server, *id, context.session());
  const ClientChannel client = self->channel_to(context);
  Answer answer =
      co_await client.send_request(std::string(request.method()), request.params(), request.stop());
  co_return answer;
}

// ---- state -----------------------------------------------------------------------------------------------

void UpstreamEvents::handle_transition(const std::shared_ptr<pool::Upstream>& upstream,
                                       const pool::Transition& transition) {
  log_.info("server", {{"server", upstream->spec().name},
                       {"state", std::string(to_string(transition.to))},
                       {"was", std::string(to_string(transition.from))},
                       {"generation", transition.generation},
                       {"reason", transition.reason}});
  const bool ready = transition.to == pool::UpstreamState::ready;
  if (transition.to == pool::UpstreamState::starting) {
    log_levels_->on_upstream_starting(upstream);
  } else if (!ready && transition.to != pool::UpstreamState::handshaking) {
    log_levels_->on_upstream_ended(upstream);
  }
  if (!ready && transition.from != pool::UpstreamState::ready) return;
  // Posted, because the pool calls this function in the middle of its own state change.
  loop_.post([weak = weak_from_this(), upstream, ready, restarted = ready && transition.generation > 1] {
    if (const auto self = weak.lock()) self->apply_transition(upstream, ready, restarted);
  });
}

void UpstreamEvents::apply_transition(const std::shared_ptr<pool::Upstream>& upstream, bool ready,
                                      bool restarted) {
  const auto entry = servers_->find(upstream->spec().name);
  if (ready) log_levels_->adjust();
  if (entry && ready && !upstream->key().empty()) list_fetcher_->refresh_unshared(entry, upstream);
  const bool outdated = restarted || (ready && entry && entry->lists_are_stored);
  if (entry && outdated && upstream->key().empty()) list_fetcher_->refresh_shared(entry, upstream);
  subscription_hub_->renew(upstream->spec().name);
}

}  // namespace fairlead::gateway
