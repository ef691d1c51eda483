#include "gateway/backend.hpp"

#include <utility>

#include "fairlead/json/writer.hpp"
#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"
#include "gateway/catalogue_pages.hpp"
#include "gateway/failure.hpp"
#include "json/redact.hpp"
#include "mcp/features.hpp"

namespace fairlead::gateway {

GatewayBackend::GatewayBackend(Loop& loop, mcp::Server front, Components components)
    : loop_(loop),
      front_(std::move(front)),
      components_(std::move(components)),
      router_(components_.servers, components_.catalogue, components_.failure_policy),
      forwarder_(std::make_shared<Forwarder>(loop, components_.pool, components_.sessions,
                                             RequestStateSealer(front_), components_.failure_policy)),
      ended_sessions_(std::make_shared<EndedSessions>(loop, components_.pool, components_.servers,
                                                      components_.catalogue)) {}

// All capabilities are advertised from the start. The gateway learns the capabilities of a server only when
// the server has started, but clients request the capabilities of the gateway only once.
bool GatewayBackend::has_capability(std::string_view capability) const {
  return capability == "tools" || capability == "resources" || capability == "prompts" ||
         capability == "logging" || capability == "completions";
}

mcp::HeaderParams GatewayBackend::header_params(std::string_view tool, const Principal& principal) const {
  // Only modern clients repeat arguments in HTTP headers, and modern clients have no session.
  const auto catalogue = components_.catalogue->view(std::string_view(), principal);
  const CatalogueEntry* const entry = catalogue->find_tool(tool);
  return entry ? entry->header_params : nullptr;
}

Error GatewayBackend::redacted(const Error& error) const {
  return json::redact(*components_.pool->redactor(), error);
}

// ---- requests --------------------------------------------------------------------------------------------

Task<Answer> GatewayBackend::serve(mcp::BackendRequest request) {
  const std::string_view method = request.message.method();
  for (const ListKind kind : kListKinds) {
    if (method == list_method(kind)) return serve_list(kind, std::move(request));
  }
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
    if (const auto owner = router_.owner_with_missing_list(request_target)) {
      const Result<void> listed =
          co_await components_.list_fetcher->fetch_for_request(owner, request_target.kind, principal, stop);
      if (!listed)
        co_return server_failure_error(owner->name(), listed.error(),
                                       components_.failure_policy.shows_details_to(*principal));
    } else if (router_.resource_may_still_be_listed(request_target)) {
      co_await components_.list_fetcher->wait_for_any_attempt(stop);
    } else {
      co_return route;
    }
  }
}

// The tools of the gateway itself precede those of the servers on the first page.
void GatewayBackend::write_own_tools(json::Writer& out, mcp::Revision revision) const {
  if (!front_.state()->has_tools) return;
  const auto own_tools = front_.state()->catalogue();
  const json::Raw entries =
      own_tools->page_json(ListKind::tools, revision, 0, own_tools->size(ListKind::tools));
  json::View(entries).each_element([&](json::View entry) {
    out.raw(entry.text());
    return true;
  });
}

Task<Answer> GatewayBackend::serve_list(ListKind kind, mcp::BackendRequest request) {
  const auto self = shared_from_this();
  const mcp::Context context = request.context;
  const Result<Cursor> from = Cursor::parse(kind, request.facts->cursor);
  if (!from) co_return from.error();
  const bool fetch_done = co_await components_.catalogue->initial_fetch_done().wait(loop_, list_wait_);
  // When the missing lists are fetched later, clients are notified of a list change.
  if (!fetch_done) components_.catalogue->initial_fetch_done().set();
  const auto catalogue = components_.catalogue->view(context.session(), *context.principal());
  const Page page = make_page(*catalogue, *from, context.revision());
  mcp::ResultWriter result(*front_.state(), context.revision());
  result.out().key(result_member(kind)).begin_array();
  if (kind == ListKind::tools && request.facts->cursor.absent())
    write_own_tools(result.out(), context.revision());
  for (const json::Raw& entry : page.entries) result.out().raw(entry);
  result.out().end_array();
  if (!page.next_cursor.empty()) result.out().key("nextCursor").string(page.next_cursor);
  result.write_cache_hint(mcp::CacheHint{0, false});
  co_return result.finish(components_.missing_list_reporter->report(kind, *catalogue));
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
      std::move(subscription.on_updated), subscription.principal);
  if (handle) co_return handle;
  if (handle.error().kind() == ErrorKind::remote) co_return redacted(handle.error());
  co_return redacted(server_failure_error(
      server, handle.error(), components_.failure_policy.shows_details_to(*subscription.principal)));
}

// ---- sessions --------------------------------------------------------------------------------------------

void GatewayBackend::on_session_began(std::string_view session, ContextSource context_source) {
  components_.sessions->add(session, std::move(context_source));
}

void GatewayBackend::on_log_level_set(std::string_view session, mcp::LoggingLevel level) {
  components_.sessions->set_log_level(session, level);
  components_.upstream_log_levels->adjust();
}

void GatewayBackend::on_session_ended(std::string_view session) {
  if (session.empty()) return;
  components_.sessions->remove(session);
  components_.upstream_log_levels->adjust();
  ended_sessions_->add(session);
}

// ---- the backend of the front server ---------------------------------------------------------------------

namespace {

class WeakBackend final : public mcp::Backend {
 public:
  explicit WeakBackend(std::weak_ptr<mcp::Backend> backend) : backend_(std::move(backend)) {}

  bool has_capability(std::string_view capability) const override {
    const auto backend = backend_.lock();
    return backend && backend->has_capability(capability);
  }
  Task<Answer> serve(mcp::BackendRequest request) override {
    const auto backend = backend_.lock();
    return backend ? backend->serve(std::move(request)) : reject_request();
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
    if (const auto backend = backend_.lock()) backend->on_session_began(session, std::move(context_source));
  }
  void on_log_level_set(std::string_view session, mcp::LoggingLevel level) override {
    if (const auto backend = backend_.lock()) backend->on_log_level_set(session, level);
  }
  void on_session_ended(std::string_view session) override {
    if (const auto backend = backend_.lock()) backend->on_session_ended(session);
  }

 private:
  static Error shut_down_error() {
    return refusal_error(rpc::kInternalError, "The gateway has been shut down", failure::gateway_shut_down);
  }
  static Task<Answer> reject_request() { co_return shut_down_error(); }
  static Task<Result<std::shared_ptr<void>>> reject_subscription() { co_return shut_down_error(); }

  std::weak_ptr<mcp::Backend> backend_;
};

}  // namespace

std::shared_ptr<mcp::Backend> weak_backend(std::weak_ptr<mcp::Backend> backend) {
  return std::make_shared<WeakBackend>(std::move(backend));
}

}  // namespace fairlead::gateway
