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

// URLs that users were sent to and have not come back from.
constexpr std::size_t kMostSent = 10'000;

}  // namespace

std::string_view capability_for(std::string_view method) noexcept {
  if (method == "sampling/createMessage") return "sampling";
  if (method == "elicitation/create") return "elicitation";
  return method == "roots/list" ? "roots" : "";
}

pool::UpstreamHandlers GatewayImpl::handlers() {
  const std::weak_ptr<GatewayImpl> weak = weak_from_this();
  pool::UpstreamHandlers handlers;
  handlers.capabilities = [](const pool::Upstream&) {
    return json::Raw::trusted(Bytes::constant(kCapabilities), true);
  };
  handlers.log_level = [weak](const pool::Upstream& upstream) {
    const auto self = weak.lock();
    return self ? self->level_for(upstream) : mcp::LoggingLevel::info;
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

// Whom a server means that says something of its own: the client whose requests it is busy with, when it is
// one client's only, or the one it runs for. With several there is no telling.
std::optional<mcp::Context> GatewayImpl::meant(const pool::Upstream& upstream) const {
  std::vector<pool::RunningCall> calls = upstream.calls();
  std::erase_if(calls, [](const pool::RunningCall& call) { return !call.caller; });  // our own business
  if (!calls.empty()) {
    const bool one = calls.size() == 1 || std::ranges::all_of(calls, [&](const pool::RunningCall& call) {
                       return !call.session.empty() && call.session == calls.front().session;
                     });
    if (!one) return std::nullopt;
    return std::static_pointer_cast<Passage>(calls.back().caller)->context;
  }
  const auto session = sessions_.find(upstream.key());
  const bool own = session != sessions_.end() && upstream.spec().sharing != pool::Sharing::per_user;
  return own ? session->second() : std::nullopt;
}

void GatewayImpl::on_notification(const std::shared_ptr<pool::Upstream>& upstream, std::string_view method,
                                  const json::Raw& params) {
  const std::string& server = upstream->spec().name;
  if (method.ends_with("/list_changed"))
    return upstream->key().empty() ? refresh(server, upstream) : refresh_own(upstream);
  if (method == "notifications/message") return on_log(*upstream, params);
  if (method == "notifications/resources/updated") {
    if (const auto uri = json::View(params)["uri"].as_string()) watches_->tell(*upstream, *uri);
    return;
  }
  if (method == "notifications/elicitation/complete") return on_completed(*upstream, params);
  log_.debug("notification for nobody", {{"server", server}, {"method", std::string(method)}});
}

Task<Answer> GatewayImpl::on_request(std::shared_ptr<GatewayImpl> self,
                                     std::shared_ptr<pool::Upstream> upstream, Request request) {
  const std::string_view capability = capability_for(request.method());
  if (!self || capability.empty()) co_return rpc::method_not_found(request.method());
  const std::optional<mcp::Context> found = self->meant(*upstream);
  const std::string server = upstream->spec().name;
  if (!found) {
    self->log_.warning("a server's request cannot be attributed",
                       {{"server", server}, {"method", std::string(request.method())}});
    co_return Error::rpc(
        rpc::kInternalError,
        "It cannot be told which client this is for: no call or calls of several clients are under "
        "way. Share this server per session (sharing = \"per_session\")");
  }
  const mcp::Context context = *found;
  if (mcp::is_modern(context.revision())) {
    co_return Error::rpc(rpc::kInternalError,
                         "The client speaks revision 2026-07-28, which has no requests from servers");
  }
  if (context.client_capabilities()[capability].absent()) co_return rpc::method_not_found(request.method());
  if (const auto id = request.args()["elicitationId"].as_string())
    self->sent_to_url(server, *id, context.session());
  Task<Result<json::Raw>> asking =
      context.ask_legacy(std::string(request.method()), request.params(), request.stop());
  Answer answer = co_await asking;
  co_return answer;
}

// ---- URLs that users were sent to (2025-11-25) ------------------------------------------------------------

void GatewayImpl::sent_to_url(const std::string& server, const std::string& elicitation,
                              std::string_view session) {
  if (session.empty()) return;  // nobody who could be told
  const auto [at, first] = sent_.emplace(server, elicitation, session);
  if (first) sent_order_.push_back(*at);
  if (sent_order_.size() <= kMostSent) return;
  sent_.erase(sent_order_.front());
  sent_order_.pop_front();
}

void GatewayImpl::on_completed(const pool::Upstream& upstream, const json::Raw& params) {
  const std::string elicitation = json::View(params)["elicitationId"].as_string().value_or("");
  const bool per_user = upstream.spec().sharing == pool::Sharing::per_user;
  std::vector<Sent> candidates;
  for (auto at = sent_.lower_bound(Sent(upstream.spec().name, elicitation, "")); at != sent_.end(); ++at) {
    if (std::get<0>(*at) != upstream.spec().name || std::get<1>(*at) != elicitation) break;
    candidates.push_back(*at);
  }
  for (const Sent& sent : candidates) {
    const auto session = sessions_.find(std::get<2>(sent));
    const auto context = session == sessions_.end() ? std::nullopt : session->second();
    // Two processes of one server may have the same ids.
    const bool another = context && !upstream.key().empty() &&
                         (per_user ? context->user() : context->session()) != upstream.key();
    if (another) continue;
    std::erase(sent_order_, sent);
    sent_.erase(sent);
    if (context) context->notify("notifications/elicitation/complete", params);
  }
}

// ---- how servers fare -------------------------------------------------------------------------------------

void GatewayImpl::on_change(const std::shared_ptr<pool::Upstream>& upstream,
                            const pool::Transition& transition) {
  const std::string& server = upstream->spec().name;
  log_.info("server", {{"server", server},
                       {"state", std::string(to_string(transition.to))},
                       {"was", std::string(to_string(transition.from))},
                       {"generation", transition.generation},
                       {"reason", transition.reason}});
  const bool began = transition.to == pool::State::ready;
  // What it is asked for in its handshake is what is wanted now; that may change until it is ready.
  if (transition.to == pool::State::starting) {
    asked_levels_[upstream] = level_for(*upstream);
  } else if (!began && transition.to != pool::State::handshaking) {
    asked_levels_.erase(upstream);
  }
  if (!began && transition.from != pool::State::ready) return;
  // Posted: the pool is in the midst of telling.
  loop_.post([weak = weak_from_this(), upstream, began, anew = began && transition.generation > 1] {
    const auto self = weak.lock();
    if (!self || self->stopping_) return;
    if (began) self->adjust_levels();
    if (began && !upstream->key().empty()) self->refresh_own(upstream);
    if (anew && upstream->key().empty()) self->refresh(upstream->spec().name, upstream);
    self->watches_->renew(upstream->spec().name);
  });
}

// ---- health ----------------------------------------------------------------------------------------------

namespace {

// Which protection of the gateway and its keeper from signals of a server is missing. Empty if none is.
std::string missing_protection(const Config& config, const std::string& server) {
  const auto spec = std::ranges::find(config.servers, server, &pool::ServerSpec::name);
  const auto* process = spec == config.servers.end() ? nullptr : std::get_if<ProcessSpec>(&spec->reach);
  if (!process) return {};
  const std::string why = signal_exposure(process->containment);
  return why.empty() ? why : "the server can stop or kill the gateway and its keeper: " + why;
}

}  // namespace

json::Raw GatewayImpl::health() const {
  json::Writer out;
  out.begin_object().key("status").string(stopping_ ? "draining" : "ok");
  out.key("processes").unsigned_integer(pool_->processes());
  const auto longest = std::chrono::duration_cast<std::chrono::milliseconds>(loop_.turns().longest());
  out.key("loop").begin_object().key("longest_turn_ms").integer(longest.count());
  out.key("slow_turns").unsigned_integer(loop_.turns().slow_turns()).end_object();
  out.key("servers").begin_array();
  for (const pool::UpstreamStatus& one : pool_->status()) {
    out.begin_object().key("name").string(one.server).key("state").string(to_string(one.state));
    out.key("healthy").boolean(one.healthy).key("generation").unsigned_integer(one.generation);
    if (!one.key.empty()) out.key("for").string(one.key);
    if (!one.connection.empty()) out.key("connection").string(one.connection);
    out.key("calls").unsigned_integer(one.calls).key("waiting").unsigned_integer(one.waiting);
    out.key("failures").unsigned_integer(one.failures);
    if (const auto known = known_.find(one.server); known != known_.end() && !known->second.problem.empty())
      out.key("lists").string(known->second.problem);
    if (const std::string missing = missing_protection(config_, one.server); !missing.empty())
      out.key("missingProtection").string(missing);
    if (one.last_error) out.key("lastError").string(one.last_error->to_string());
    out.end_object();
  }
  out.end_array().end_object();
  return out.finish();
}

}  // namespace fairlead::gateway
