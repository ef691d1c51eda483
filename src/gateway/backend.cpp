#include "gateway/backend.hpp"

#include <utility>

#include "fairlead/json/writer.hpp"
#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"
#include "gateway/failure.hpp"
#include "json/redact.hpp"
#include "mcp/features.hpp"

namespace fairlead::gateway {

namespace {

// All capabilities are advertised from the start. The gateway learns the capabilities of a server only when
// the server has started, but clients request the capabilities of the gateway only once.
bool advertises(std::string_view capability) noexcept {
  return capability == "tools" || capability == "resources" || capability == "prompts" ||
         capability == "logging" || capability == "completions";
}

// Writes the tools of the gateway itself, or at this endpoint, as elements of an array. `tools` may be null.
void write_own_tools(json::Writer& out, const EndpointTools* tools, const mcp::ServerState& front,
                     mcp::Revision revision) {
  if (tools) {
    for (const json::Raw& entry : tools->entries(revision)) out.raw(entry);
  }
  if (!front.has_tools) return;
  const auto own_tools = front.catalogue();
  const json::Raw entries =
      own_tools->page_json(ListKind::tools, revision, 0, own_tools->size(ListKind::tools));
  json::View(entries).each_element([&](json::View entry) {
    out.raw(entry.text());
    return true;
  });
}

// Returns the result for the page that begins at `from`, complete with the `_meta` in `missing`. `tools` may
// be null.
json::Raw encode_page(const Catalogue& entries, const Cursor& from, const EndpointTools* tools,
                      const mcp::ServerState& front, mcp::Revision revision, const json::Raw& missing) {
  const Page page = make_page(entries, from, revision);
  mcp::ResultWriter result(front, revision);
  result.out().key(result_member(from.kind)).begin_array();
  // The tools of the gateway itself precede those of the servers on the first page.
  if (from.kind == ListKind::tools && from.is_start()) write_own_tools(result.out(), tools, front, revision);
  for (const json::Raw& entry : page.entries) result.out().raw(entry);
  result.out().end_array();
  if (!page.next_cursor.empty()) result.out().key("nextCursor").string(page.next_cursor);
  result.write_cache_hint(mcp::CacheHint{0, false});
  return result.finish(missing);
}

}  // namespace

GatewayBackend::GatewayBackend(Loop& loop, mcp::Server front, Components components,
                               std::shared_ptr<const EndpointScope> scope)
    : loop_(loop),
      front_(std::move(front)),
      components_(std::move(components)),
      router_(components_.servers, components_.catalogue, components_.failure_policy, scope),
      forwarder_(std::make_shared<Forwarder>(loop, components_.pool, components_.sessions,
                                             RequestStateSealer(front_), components_.failure_policy)),
      own_lists_(std::make_shared<OwnListFetcher>(loop, components_.pool, components_.list_fetcher)),
      scope_(std::move(scope)) {}

bool GatewayBackend::has_capability(std::string_view capability) const {
  return advertises(capability);
}

mcp::HeaderParams GatewayBackend::header_params(std::string_view tool, const Principal& principal) const {
  return router_.header_params(tool, principal);
}

Error GatewayBackend::redacted(const Error& error) const {
  return json::redact(*components_.pool->monitor()->redactor(), error);
}

// ---- requests --------------------------------------------------------------------------------------------

Task<Answer> GatewayBackend::serve(mcp::BackendRequest request) {
  const std::string_view method = request.message.method();
  for (const ListKind kind : kListKinds) {
    if (method == list_method(kind)) return serve_list(kind, std::move(request));
  }
  const bool own_tool = tools_ && method == "tools/call" &&
                        tools_->has_tool(request.facts->target_text().value_or(std::string_view()));
  return own_tool ? call_own_tool(std::move(request)) : forward(std::move(request));
}

bool GatewayBackend::serve_directly(mcp::DirectRequest&& request,
                                    const std::shared_ptr<Responder>& responder) {
  const Result<RequestTarget> target = parse_request_target(*request.facts);
  if (!target || target->kind != ListKind::tools || (tools_ && tools_->has_tool(target->name))) return false;
  const mcp::Context& context = request.context;
  Result<Route> route = router_.route(*target, context.session(), *context.principal());
  return route && forwarder_->try_forward(std::move(request), std::move(*route), responder);
}

Task<Answer> GatewayBackend::call_own_tool(mcp::BackendRequest request) {
  const auto self = shared_from_this();
  const std::shared_ptr<EndpointTools> tools = tools_;
  Answer answer = co_await tools->call(*self, std::move(request));
  co_return answer;
}

Task<Answer> GatewayBackend::forward(mcp::BackendRequest request) {
  Result<RequestTarget> request_target = parse_request_target(*request.facts);
  if (!request_target) return ready_task<Answer>(request_target.error());
  const mcp::Context& context = request.context;
  Result<Route> route = router_.route(*request_target, context.session(), *context.principal());
  if (route) return forwarder_->forward(std::move(request), std::move(*route));
  return forward_when_routable(std::move(request), std::move(*request_target));
}

Task<Answer> GatewayBackend::forward_when_routable(mcp::BackendRequest request,
                                                   RequestTarget request_target) {
  const auto self = shared_from_this();
  const mcp::Context& context = request.context;
  Result<Route> route = co_await wait_for_route(request_target, std::string(context.session()),
                                                context.principal(), context.stop());
  if (!route) co_return redacted(route.error());
  Answer answer = co_await forwarder_->forward(std::move(request), std::move(*route));
  co_return answer;
}

Task<Result<Route>> GatewayBackend::wait_for_route(const RequestTarget& request_target, std::string session,
                                                   PrincipalPtr principal, std::stop_token stop) {
  while (true) {
    const Result<Route> route = router_.route(request_target, session, *principal);
    if (route || stop.stop_requested()) co_return route;
    const auto owner = router_.owner_with_missing_list(request_target, *principal);
    // The shared lists of the server are missing, but the client has those of its own upstream.
    if (owner && owner->unshared_lists(session, principal->user)) co_return route;
    if (owner) {
      Task<Result<void>> fetching =
          OwnListFetcher::is_needed(*owner, *principal)
              ? OwnListFetcher::fetch(own_lists_, owner, principal, stop)
              : components_.list_fetcher->fetch_for_request(owner, request_target.kind, principal, stop);
      const Result<void> listed = co_await fetching;
      if (!listed)
        co_return server_failure_error(owner->name(), listed.error(),
                                       components_.failure_policy.shows_details_to(*principal));
    } else if (router_.resource_may_still_be_listed(request_target, *principal)) {
      co_await components_.list_fetcher->wait_for_any_attempt(stop);
    } else {
      co_return route;
    }
  }
}

Task<void> GatewayBackend::wait_for_lists(PrincipalPtr principal, std::stop_token stop) {
  const auto self = shared_from_this();
  Event& initial_fetch_done = components_.catalogue->initial_fetch_done();
  if (!initial_fetch_done.is_set() && !scope_->is_plain()) {
    co_await wait_for_offered_lists(principal, stop);
  } else if (!initial_fetch_done.is_set()) {
    const bool fetch_done = co_await initial_fetch_done.wait(loop_, *components_.list_wait);
    // When the missing lists are fetched later, clients are notified of a list change.
    if (!fetch_done) initial_fetch_done.set();
  }
  Task<void> waiting = OwnListFetcher::wait_for_all(own_lists_, components_.servers, scope_, principal, stop,
                                                    *components_.list_wait);
  co_await waiting;
}

Task<void> GatewayBackend::wait_for_offered_lists(PrincipalPtr principal, std::stop_token stop) {
  const Clock::time_point deadline = Clock::now() + *components_.list_wait;
  std::optional<std::string> unlisted = find_unlisted_server(*principal, std::string());
  while (unlisted && Clock::now() < deadline && !stop.stop_requested()) {
    co_await components_.list_fetcher->wait_for_any_attempt(stop, deadline - Clock::now());
    unlisted = find_unlisted_server(*principal, *unlisted);
  }
  if (unlisted) components_.catalogue->initial_fetch_done().set();
}

std::optional<std::string> GatewayBackend::find_unlisted_server(const Principal& principal,
                                                                const std::string& from) const {
  const ClientScope client{*scope_, principal};
  const auto& servers = components_.servers->by_name();
  const std::string* const single = scope_->single_server();
  auto at = servers.lower_bound(single ? *single : from);
  for (; at != servers.end() && (!single || at->first == *single); ++at) {
    if (!at->second->fetch_state.attempted && client.offers(*at->second)) return at->first;
  }
  return std::nullopt;
}

Task<Answer> GatewayBackend::serve_list(ListKind kind, mcp::BackendRequest request) {
  const auto self = shared_from_this();
  const mcp::Context context = request.context;
  const Result<Cursor> from = Cursor::parse(kind, request.facts->cursor);
  if (!from) co_return from.error();
  co_await wait_for_lists(context.principal(), context.stop());
  const auto entries = catalogue(context.session(), *context.principal());
  const ClientScope client{*scope_, *context.principal()};
  const bool all_servers = scope_->is_plain() && components_.servers->all_visible();
  const json::Raw missing =
      components_.missing_list_reporter->report(kind, *entries, all_servers ? nullptr : &client);
  const mcp::ServerState& front = *front_.state();
  if (!missing.absent())
    co_return encode_page(*entries, *from, tools_.get(), front, context.revision(), missing);
  EncodedPages::Key key{scope_->id(), front.catalogue(), kind, context.revision(),
                        std::string(request.facts->cursor.text())};
  json::Raw page = entries->encoded_pages().find(key);
  if (page.absent()) {
    page = encode_page(*entries, *from, tools_.get(), front, context.revision(), missing);
    entries->encoded_pages().add(std::move(key), page, components_.page_budget);
  }
  co_return page;
}

Task<Result<std::shared_ptr<void>>> GatewayBackend::subscribe(mcp::BackendSubscription subscription) {
  const auto self = shared_from_this();
  RequestTarget request_target;
  request_target.kind = ListKind::resources;
  request_target.name = subscription.uri;
  const Result<Route> route = co_await wait_for_route(request_target, subscription.session,
                                                      subscription.principal, subscription.stop);
  if (!route) co_return redacted(route.error());
  const std::string server = route->server->name();
  pool::Target target(server, std::move(subscription.session), subscription.principal->user);
  Result<std::shared_ptr<void>> handle = co_await components_.subscription_hub->subscribe(
      std::move(target), std::move(subscription.uri), std::move(subscription.stop),
      while_offered(server, std::move(subscription.on_updated), subscription.principal),
      subscription.principal);
  if (handle) co_return handle;
  if (handle.error().kind() == ErrorKind::remote) co_return redacted(handle.error());
  co_return redacted(server_failure_error(
      server, handle.error(), components_.failure_policy.shows_details_to(*subscription.principal)));
}

// Updates are not sent to a client that no longer sees the server.
SubscriptionHub::UpdateCallback GatewayBackend::while_offered(const std::string& server,
                                                              SubscriptionHub::UpdateCallback on_updated,
                                                              PrincipalPtr client) const {
  return [server, on_updated = std::move(on_updated), client = std::move(client), scope = scope_,
          servers = components_.servers](const std::string& uri) {
    const auto entry = servers->find(server);
    if (entry && ClientScope{*scope, *client}.offers(*entry)) on_updated(uri);
  };
}

// ---- sessions --------------------------------------------------------------------------------------------

void GatewayBackend::on_session_began(std::string_view session, ContextSource context_source) {
  components_.client_sessions->on_began(session, std::move(context_source));
}

void GatewayBackend::on_log_level_set(std::string_view session, mcp::LoggingLevel level) {
  components_.client_sessions->on_log_level_set(session, level);
}

void GatewayBackend::on_session_ended(std::string_view session) {
  components_.client_sessions->on_ended(session);
}

// ---- the backend of the front server ---------------------------------------------------------------------

namespace {

class WeakBackend final : public mcp::Backend {
 public:
  WeakBackend(std::weak_ptr<GatewayBackend> backend, std::weak_ptr<ClientSessions> sessions)
      : backend_(std::move(backend)), sessions_(std::move(sessions)) {}

  bool has_capability(std::string_view capability) const override {
    return !backend_.expired() && advertises(capability);  // called for each request
  }
  Task<Answer> serve(mcp::BackendRequest request) override {
    const auto backend = backend_.lock();
    return backend ? backend->serve(std::move(request)) : reject_request();
  }
  bool serve_directly(mcp::DirectRequest&& request, const std::shared_ptr<Responder>& responder) override {
    const auto backend = backend_.lock();
    return backend && backend->serve_directly(std::move(request), responder);
  }
  mcp::HeaderParams header_params(std::string_view tool, const Principal& principal) const override {
    const auto backend = backend_.lock();
    return backend ? backend->header_params(tool, principal) : nullptr;
  }
  Task<Result<std::shared_ptr<void>>> subscribe(mcp::BackendSubscription subscription) override {
    const auto backend = backend_.lock();
    return backend ? backend->subscribe(std::move(subscription)) : reject_subscription();
  }
  void on_session_began(std::string_view session, ContextSource context_source) override {
    if (const auto sessions = sessions_.lock()) sessions->on_began(session, std::move(context_source));
  }
  void on_log_level_set(std::string_view session, mcp::LoggingLevel level) override {
    if (const auto sessions = sessions_.lock()) sessions->on_log_level_set(session, level);
  }
  void on_session_ended(std::string_view session) override {
    if (const auto sessions = sessions_.lock()) sessions->on_ended(session);
  }

 private:
  static Error shut_down_error() {
    return refusal_error(rpc::kInternalError, "The gateway has been shut down", failure::gateway_shut_down);
  }
  static Task<Answer> reject_request() { co_return shut_down_error(); }
  static Task<Result<std::shared_ptr<void>>> reject_subscription() { co_return shut_down_error(); }

  std::weak_ptr<GatewayBackend> backend_;
  std::weak_ptr<ClientSessions> sessions_;
};

}  // namespace

std::shared_ptr<mcp::Backend> weak_backend(std::weak_ptr<GatewayBackend> backend,
                                           std::weak_ptr<ClientSessions> sessions) {
  return std::make_shared<WeakBackend>(std::move(backend), std::move(sessions));
}

}  // namespace fairlead::gateway
