// What servers say without being asked, and to whom it goes: to the one client it can be meant for, or to
// nobody.
#include <algorithm>

#include "fairlead/json/writer.hpp"
#include "fairlead/rpc/codes.hpp"
#include "gateway/gateway_impl.hpp"

namespace fairlead::gateway {

namespace {

// Everything; whether a client can do it is seen when it is asked.
constexpr std::string_view kCapabilities = R"({"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}})";

// The request the server is busy with, when all it is busy with came from one client. With several there is
// no telling whom it means.
std::shared_ptr<Passage> meant(const pool::Upstream& upstream) {
  const std::vector<pool::RunningCall> calls = upstream.calls();
  if (calls.empty()) return nullptr;
  const bool one = std::ranges::all_of(calls, [&](const pool::RunningCall& call) {
    return !call.session.empty() && call.session == calls.front().session;
  });
  if (!one && calls.size() > 1) return nullptr;
  return std::static_pointer_cast<Passage>(calls.back().caller);
}

std::string_view capability_for(std::string_view method) {
  if (method == "sampling/createMessage") return "sampling";
  if (method == "elicitation/create") return "elicitation";
  return method == "roots/list" ? "roots" : "";
}

}  // namespace

pool::UpstreamHandlers GatewayImpl::handlers() {
  const std::weak_ptr<GatewayImpl> weak = weak_from_this();
  pool::UpstreamHandlers handlers;
  handlers.capabilities = [](const pool::Upstream&) {
    return json::Raw::trusted(Bytes::constant(kCapabilities), true);
  };
  handlers.request = [weak](std::shared_ptr<pool::Upstream> upstream, Request request) {
    return on_request(weak.lock(), std::move(upstream), std::move(request));
  };
  handlers.notified = [weak](const pool::Upstream& upstream, std::string_view method,
                             const json::Raw& params) {
    if (const auto self = weak.lock()) self->on_notification(upstream, method, params);
  };
  handlers.changed = [weak](const pool::Upstream& upstream, const pool::Transition& transition) {
    if (const auto self = weak.lock()) self->on_change(upstream, transition);
  };
  return handlers;
}

void GatewayImpl::on_notification(const pool::Upstream& upstream, std::string_view method,
                                  const json::Raw& params) {
  if (method.ends_with("/list_changed")) return refresh(upstream.spec().name);
  if (method == "notifications/message") return on_log(upstream, params);
  if (method == "notifications/resources/updated") {
    if (const auto uri = json::View(params)["uri"].as_string()) front_.resource_updated(*uri);
    return;
  }
  log_.debug("notification for nobody", {{"server", upstream.spec().name}, {"method", std::string(method)}});
}

void GatewayImpl::on_log(const pool::Upstream& upstream, const json::Raw& params) {
  const json::View view(params);
  const auto level = mcp::logging_level_named(view["level"].as_string().value_or(""));
  log_.debug("server says", {{"server", upstream.spec().name},
                             {"level", view["level"].as_string().value_or("")},
                             {"data", std::string(view["data"].text().substr(0, 1000))}});
  const std::shared_ptr<Passage> passage = meant(upstream);
  if (!passage || !level) return;
  const std::optional<mcp::LoggingLevel> wanted = passage->context.log_level();
  if (wanted && *level >= *wanted) passage->context.notify("notifications/message", params);
}

Task<Answer> GatewayImpl::on_request(std::shared_ptr<GatewayImpl> self,
                                     std::shared_ptr<pool::Upstream> upstream, Request request) {
  const std::string_view capability = capability_for(request.method());
  if (!self || capability.empty()) co_return rpc::method_not_found(request.method());
  const std::shared_ptr<Passage> passage = meant(*upstream);
  const std::string server = upstream->spec().name;
  if (!passage) {
    self->log_.warning("a server's request cannot be attributed",
                       {{"server", server}, {"method", std::string(request.method())}});
    co_return Error::rpc(
        rpc::kInternalError,
        "It cannot be told which client this is for: no call or calls of several clients are under "
        "way. Share this server per session (sharing = \"per_session\")");
  }
  const mcp::Context context = passage->context;
  if (mcp::is_modern(context.revision())) {
    co_return Error::rpc(rpc::kInternalError,
                         "The client speaks revision 2026-07-28, which has no requests from servers");
  }
  if (context.client_capabilities()[capability].absent()) co_return rpc::method_not_found(request.method());
  Task<Result<json::Raw>> asking = context.ask_legacy(std::string(request.method()), request.params());
  Answer answer = co_await asking;
  co_return answer;
}

void GatewayImpl::on_change(const pool::Upstream& upstream, const pool::Transition& transition) {
  const std::string& server = upstream.spec().name;
  log_.info("server", {{"server", server},
                       {"state", std::string(to_string(transition.to))},
                       {"was", std::string(to_string(transition.from))},
                       {"generation", std::to_string(transition.generation)},
                       {"reason", transition.reason}});
  const bool anew = transition.to == pool::State::ready && transition.generation > 1;
  if (!anew) return;
  // Posted: the pool is in the midst of telling.
  loop_.post([weak = weak_from_this(), server] {
    const auto self = weak.lock();
    if (!self) return;
    self->refresh(server);
    for (const auto& [uri, watched] : self->watched_) {
      const std::string* const owner = self->catalogue_->server_of_resource(uri);
      if (owner && *owner == server) self->loop_.spawn(subscribe(self, uri));
    }
  });
}

// ---- subscriptions ---------------------------------------------------------------------------------------

void GatewayImpl::subscribed(const std::string& uri, bool on) {
  if (on) {
    watched_[uri] = std::make_shared<Watched>();
    loop_.spawn(subscribe(shared_from_this(), uri));
    return;
  }
  const auto found = watched_.find(uri);
  if (found == watched_.end()) return;
  // Letting go of the lease is enough for one that is not subscribed yet.
  const std::shared_ptr<Watched> watched = found->second;
  watched_.erase(found);
  watched->wanted = false;
  loop_.spawn(unsubscribe(watched));
}

Task<void> GatewayImpl::subscribe(std::shared_ptr<GatewayImpl> self, std::string uri) {
  const auto found = self->watched_.find(uri);
  const std::string* const server = self->catalogue_->server_of_resource(uri);
  if (found == self->watched_.end() || !server) co_return;
  const std::shared_ptr<Watched> watched = found->second;
  pool::Target target(*server);
  Task<Result<pool::Lease>> acquiring = self->pool_->acquire(std::move(target));
  Result<pool::Lease> lease = co_await acquiring;
  if (!lease || !watched->wanted) co_return;
  Task<Result<std::uint64_t>> subscribing = lease->client().subscribe(uri);
  const Result<std::uint64_t> number = co_await subscribing;
  if (!number) {
    self->log_.warning("cannot subscribe", {{"uri", uri}, {"reason", number.error().message()}});
    co_return;
  }
  watched->lease.emplace(std::move(*lease));
  watched->subscription = *number;
  if (!watched->wanted) {
    Task<void> letting_go = unsubscribe(watched);
    co_await letting_go;
  }
}

Task<void> GatewayImpl::unsubscribe(std::shared_ptr<Watched> watched) {
  if (!watched->lease || !watched->subscription) co_return;
  const std::uint64_t number = *std::exchange(watched->subscription, std::nullopt);
  Task<Result<void>> letting_go = watched->lease->client().unlisten(number);
  const Result<void> done = co_await letting_go;
  static_cast<void>(done);
  watched->lease.reset();
}

void GatewayImpl::session_ended(std::string_view session) {
  if (!stopping_) pool_->end_session(session);
}

// ---- health ----------------------------------------------------------------------------------------------

json::Raw GatewayImpl::health() const {
  json::Writer out;
  out.begin_object().key("status").string(stopping_ ? "draining" : "ok");
  out.key("processes").unsigned_integer(pool_->processes());
  out.key("servers").begin_array();
  for (const pool::UpstreamStatus& one : pool_->status()) {
    out.begin_object().key("name").string(one.server).key("state").string(to_string(one.state));
    out.key("healthy").boolean(one.healthy).key("generation").unsigned_integer(one.generation);
    if (!one.key.empty()) out.key("for").string(one.key);
    if (!one.connection.empty()) out.key("connection").string(one.connection);
    out.key("calls").unsigned_integer(one.calls).key("waiting").unsigned_integer(one.waiting);
    out.key("failures").unsigned_integer(one.failures);
    if (one.last_error) out.key("lastError").string(one.last_error->to_string());
    out.end_object();
  }
  out.end_array().end_object();
  return out.finish();
}

}  // namespace fairlead::gateway
