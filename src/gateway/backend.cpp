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

GatewayBackend::GatewayBackend(Loop& loop, mcp::Server front, Units units)
    : loop_(loop),
      front_(std::move(front)),
      units_(std::move(units)),
      router_(units_.servers, units_.catalogue, units_.failures),
      forwarder_(std::make_shared<Forwarder>(loop, units_.pool, units_.sessions, RequestStates(front_),
                                             units_.failures)),
      ended_sessions_(std::make_shared<EndedSessions>(loop, units_.pool, units_.servers, units_.catalogue)) {}

// Advertised from the beginning: what servers have is known only when they have been started, and clients ask
// once.
bool GatewayBackend::has_capability(std::string_view capability) const {
  return capability == "tools" || capability == "resources" || capability == "prompts" ||
         capability == "logging" || capability == "completions";
}

mcp::HeaderParams GatewayBackend::header_params(std::string_view tool, const Principal& principal) const {
  // Headers repeat arguments in the modern era only, which has no sessions.
  const auto catalogue = units_.catalogue->view(std::string_view(), principal);
  const Offer* const offer = catalogue->tool(tool);
  return offer ? offer->header_params : nullptr;
}

Error GatewayBackend::redacted(const Error& error) const {
  return json::redact(*units_.pool->redactor(), error);
}

// ---- requests --------------------------------------------------------------------------------------------

Task<Answer> GatewayBackend::serve(mcp::BackendRequest request) {
  const std::string_view method = request.message.method();
  for (const Kind kind : kKinds) {
    if (method == list_method(kind)) return list(kind, std::move(request));
  }
  Result<Requested> requested = requested_in(*request.facts);
  if (!requested) return ready_task<Answer>(requested.error());
  const mcp::Context& context = request.context;
  Result<Route> found = router_.route(*requested, context.session(), *context.principal());
  if (found) return forwarder_->forward(std::move(request), std::move(*found));
  return serve_when_listed(std::move(request), std::move(*requested));
}

Task<Answer> GatewayBackend::serve_when_listed(mcp::BackendRequest request, Requested requested) {
  const auto keep = shared_from_this();
  const mcp::Context& context = request.context;
  Task<Result<Route>> waiting =
      wait_for_route(requested, std::string(context.session()), context.principal(), context.stop());
  Result<Route> found = co_await waiting;
  if (!found) co_return redacted(found.error());
  Task<Answer> forwarding = forwarder_->forward(std::move(request), std::move(*found));
  Answer answer = co_await forwarding;
  co_return answer;
}

Task<Result<Route>> GatewayBackend::wait_for_route(const Requested& requested, std::string session,
                                                   PrincipalPtr principal, std::stop_token stop) {
  while (true) {
    const Result<Route> found = router_.route(requested, session, *principal);
    if (found || stop.stop_requested()) co_return found;
    if (const auto owner = router_.unlisted_owner(requested)) {
      Task<Result<void>> listing = units_.listing->list_for_request(owner, requested.kind, principal, stop);
      const Result<void> listed = co_await listing;
      if (!listed)
        co_return failure_of(owner->name(), listed.error(), units_.failures.tells_details(*principal));
    } else if (router_.may_be_listed_yet(requested)) {
      Task<void> waiting = units_.listing->next_attempt(stop);
      co_await waiting;
    } else {
      co_return found;
    }
  }
}

// They come first, on the first page.
void GatewayBackend::write_own_tools(json::Writer& out, mcp::Revision revision) const {
  if (!front_.state()->has_tools) return;
  const auto own = front_.state()->catalogue();
  const json::Raw entries = own->encoded(mcp::ListKind::tools, revision, 0, own->size(mcp::ListKind::tools));
  json::View(entries).each_element([&](json::View entry) {
    out.raw(entry.text());
    return true;
  });
}

Task<Answer> GatewayBackend::list(Kind kind, mcp::BackendRequest request) {
  const auto keep = shared_from_this();
  const mcp::Context context = request.context;
  const Result<Cursor> from = Cursor::parse(kind, request.facts->cursor);
  if (!from) co_return from.error();
  const bool all = co_await units_.catalogue->complete().wait(loop_, list_wait_);
  // Those that are late come with a change of the list.
  if (!all) units_.catalogue->complete().set();
  const auto catalogue = units_.catalogue->view(context.session(), *context.principal());
  const Page page = page_of(*catalogue, *from, context.revision());
  mcp::ResultWriter result(*front_.state(), context.revision());
  result.out().key(member_of(kind)).begin_array();
  if (kind == Kind::tools && request.facts->cursor.absent())
    write_own_tools(result.out(), context.revision());
  for (const json::Raw& entry : page.entries) result.out().raw(entry);
  result.out().end_array();
  if (!page.next_cursor.empty()) result.out().key("nextCursor").string(page.next_cursor);
  result.cache_hint(mcp::CacheHint{0, false});
  co_return result.finish(units_.missing->meta(kind, *catalogue));
}

Task<Result<std::shared_ptr<void>>> GatewayBackend::subscribe(mcp::BackendSubscription subscription) {
  const auto keep = shared_from_this();
  Requested requested;
  requested.kind = Kind::resources;
  requested.name = subscription.uri;
  Task<Result<Route>> routing =
      wait_for_route(requested, subscription.session, subscription.principal, subscription.stop);
  const Result<Route> found = co_await routing;
  if (!found) co_return redacted(found.error());
  const std::string server = found->server->name();
  pool::Target target(server, std::move(subscription.session), subscription.principal->user);
  Task<Result<std::shared_ptr<void>>> subscribing =
      units_.watches->subscribe(std::move(target), std::move(subscription.uri), std::move(subscription.stop),
                                std::move(subscription.updated), subscription.principal);
  Result<std::shared_ptr<void>> made = co_await subscribing;
  if (made) co_return made;
  if (made.error().kind() == ErrorKind::remote) co_return redacted(made.error());
  co_return redacted(
      failure_of(server, made.error(), units_.failures.tells_details(*subscription.principal)));
}

// ---- sessions --------------------------------------------------------------------------------------------

void GatewayBackend::session_began(std::string_view session, Reach reach) {
  units_.sessions->add(session, std::move(reach));
}

void GatewayBackend::log_level_set(std::string_view session, mcp::LoggingLevel level) {
  units_.sessions->set_level(session, level);
  units_.levels->adjust();
}

void GatewayBackend::session_ended(std::string_view session) {
  if (session.empty()) return;
  units_.sessions->remove(session);
  units_.levels->adjust();
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
    return backend ? backend->serve(std::move(request)) : refuse_request();
  }
  mcp::HeaderParams header_params(std::string_view tool, const Principal& principal) const override {
    const auto backend = backend_.lock();
    return backend ? backend->header_params(tool, principal) : nullptr;
  }
  Task<Result<std::shared_ptr<void>>> subscribe(mcp::BackendSubscription subscription) override {
    const auto backend = backend_.lock();
    return backend ? backend->subscribe(std::move(subscription)) : refuse_subscription();
  }
  void session_began(std::string_view session, Reach reach) override {
    if (const auto backend = backend_.lock()) backend->session_began(session, std::move(reach));
  }
  void log_level_set(std::string_view session, mcp::LoggingLevel level) override {
    if (const auto backend = backend_.lock()) backend->log_level_set(session, level);
  }
  void session_ended(std::string_view session) override {
    if (const auto backend = backend_.lock()) backend->session_ended(session);
  }

 private:
  static Error shut_down() {
    return refusal_of(rpc::kInternalError, "The gateway has been shut down", failure::gateway_shut_down);
  }
  static Task<Answer> refuse_request() { co_return shut_down(); }
  static Task<Result<std::shared_ptr<void>>> refuse_subscription() { co_return shut_down(); }

  std::weak_ptr<mcp::Backend> backend_;
};

}  // namespace

std::shared_ptr<mcp::Backend> weak_backend(std::weak_ptr<mcp::Backend> backend) {
  return std::make_shared<WeakBackend>(std::move(backend));
}

}  // namespace fairlead::gateway
