#include "pool/server_registry.hpp"

#include <algorithm>
#include <iterator>
#include <ranges>

#include "base/take_keys.hpp"
#include "fairlead/process/failure.hpp"
#include "loop/slices.hpp"
#include "pool/reference_resolver.hpp"

namespace fairlead::pool {

namespace {

// Which of a server's upstreams serves `target`: empty for the shared one.
const std::string& upstream_key(Sharing sharing, const Target& target) {
  static const std::string kEverybody;
  if (sharing == Sharing::per_session) return target.session;
  return sharing == Sharing::per_user ? target.user : kEverybody;
}

}  // namespace

std::shared_ptr<ServerRegistry> ServerRegistry::create(std::shared_ptr<Core> core) {
  auto registry = std::make_shared<ServerRegistry>(std::move(core));
  registry->core_->settled = [weak = registry->weak_from_this()](ManagedUpstream& upstream) {
    if (const auto self = weak.lock()) self->forget(upstream);
  };
  return registry;
}

// ---- servers ---------------------------------------------------------------------------------------------

Result<ServerRegistry::Server*> ServerRegistry::find(std::string_view name) {
  const auto found = servers_.find(name);
  if (found == servers_.end()) {
    return with_failure_code(Error(ErrorKind::validation, "there is no server " + std::string(name)),
                             failure::unknown_server);
  }
  return &found->second;
}

ServerRegistry::Server ServerRegistry::make_server(ServerSpec spec) {
  Server server;
  server.state =
      std::make_shared<ServerState>(core_->loop, std::move(spec), core_->options.client.era_max_age);
  const ServerSpec& given = server.state->spec;
  server.enabled = given.enabled;
  core_->referenced_variables.set(given.name, referenced_variables(given));
  if (given.sharing != Sharing::automatic) {
    server.state->sharing = given.sharing;
  } else {
    server.state->keeps_state = [weak = weak_from_this(), name = given.name](const std::string& evidence) {
      if (const auto self = weak.lock()) self->keep_apart(name, evidence);
    };
  }
  keep_running(server);
  return server;
}

// Which session or user to start a private one for is known only when it calls.
void ServerRegistry::keep_running(Server& server) {
  const bool shared = server.state->sharing == Sharing::shared;
  if (server.enabled && server.state->spec.keep_running && shared && server.upstreams.empty())
    server.upstreams.emplace("", ManagedUpstream::make(core_, server.state, ""));
}

Result<void> ServerRegistry::add(ServerSpec spec) {
  if (servers_.contains(spec.name))
    return Error(ErrorKind::validation, "there is a server " + spec.name + " already");
  std::string name = spec.name;
  servers_.emplace(std::move(name), make_server(std::move(spec)));
  return {};
}

Result<void> ServerRegistry::update(ServerSpec spec) {
  const Result<Server*> server = find(spec.name);
  if (!server) return server.error();
  retire(**server, "it was updated");
  const bool disabled = (*server)->state->spec.enabled && !(*server)->enabled;  // by disable()
  **server = make_server(std::move(spec));
  if (disabled) return disable((*server)->state->spec.name);
  return {};
}

Result<void> ServerRegistry::remove(std::string_view name) {
  const Result<Server*> server = find(name);
  if (!server) return server.error();
  retire(**server, "it was removed");
  servers_.erase(servers_.find(name));
  core_->referenced_variables.erase(name);
  return {};
}

Result<void> ServerRegistry::disable(std::string_view name) {
  const Result<Server*> server = find(name);
  if (!server) return server.error();
  (*server)->enabled = false;
  for (const auto& [key, upstream] : (*server)->upstreams)
    upstream->lifecycle.retire("it was disabled", upstream->spec().clocks.drain);
  return {};
}

Result<void> ServerRegistry::enable(std::string_view name) {
  const Result<Server*> server = find(name);
  if (!server) return server.error();
  (*server)->enabled = true;
  for (const auto& [key, upstream] : (*server)->upstreams) upstream->lifecycle.restore();
  keep_running(**server);
  return {};
}

void ServerRegistry::retire(Server& server, std::string_view why) {
  for (auto& [key, upstream] : std::exchange(server.upstreams, {})) let_go(upstream, why);
}

void ServerRegistry::let_go(UpstreamPtr upstream, std::string_view why) {
  leaving_[upstream->spec().name].insert(upstream);
  upstream->lifecycle.retire(why, upstream->spec().clocks.drain);
}

// ---- upstreams -------------------------------------------------------------------------------------------

Result<ServerRegistry::UpstreamPtr> ServerRegistry::upstream_of(const Target& target) {
  if (shutting_down_)
    return with_failure_code(Error(ErrorKind::closed, "the pool is shutting down"), failure::draining);
  const Result<Server*> found = find(target.server);
  if (!found) return found.error();
  Server& server = **found;
  if (!server.enabled) {
    return with_failure_code(Error(ErrorKind::connection_failed, "server " + target.server + " is disabled"),
                             failure::server_stopped);
  }
  const std::string& key = upstream_key(server.state->sharing, target);
  const auto known = server.upstreams.find(key);
  if (known != server.upstreams.end()) return known->second;
  UpstreamPtr made = ManagedUpstream::make(core_, server.state, key);
  server.upstreams.emplace(key, made);
  return made;
}

void ServerRegistry::note_method(const Target& target, std::string_view method) {
  if (method != "logging/setLevel" && method != "resources/subscribe") return;
  const Result<Server*> server = find(target.server);
  if (!server || !(*server)->state->keeps_state || target.session.empty()) return;
  keep_apart(target.server, "it is asked for " + std::string(method));
}

Task<void> ServerRegistry::end_sessions(std::set<std::string, std::less<>> sessions) {
  const auto keep = shared_from_this();
  sessions.erase("");  // the key of shared upstreams
  Slices slices;
  std::string name;
  for (auto at = servers_.begin(); at != servers_.end(); at = servers_.upper_bound(name)) {
    name = at->first;
    Server& server = at->second;
    std::vector<UpstreamPtr> ended;
    if (server.state->sharing == Sharing::per_session) ended = take_keys(server.upstreams, sessions);
    const auto shared = server.upstreams.find("");
    if (shared != server.upstreams.end()) shared->second->use.sessions_ended(sessions);
    if (!ended.empty()) leaving_[name].insert(ended.begin(), ended.end());
    if (slices.due(0)) co_await sleep_for(core_->loop, Slices::kPause);
    for (const UpstreamPtr& upstream : ended) {
      upstream->lifecycle.retire("its session has ended", upstream->spec().clocks.drain);
      if (slices.due(0)) co_await sleep_for(core_->loop, Slices::kPause);
    }
  }
}

// A server that was shared turns out to keep state: from now on every session has its own. The connection
// there is stays with its session where it has served no other, and is let go of otherwise.
void ServerRegistry::keep_apart(const std::string& name, const std::string& evidence) {
  const Result<Server*> found = find(name);
  if (!found || (*found)->state->sharing != Sharing::shared) return;
  Server& server = **found;
  server.state->sharing = Sharing::per_session;
  server.state->evidence = evidence;
  core_->log().info("server is no longer shared", {{"server", name}, {"evidence", evidence}});
  if (core_->options.handlers.kept_apart)
    core_->loop.post([core = core_, name] { core->options.handlers.kept_apart(name); });
  const auto shared = server.upstreams.find("");
  if (shared == server.upstreams.end()) return;
  const UpstreamPtr upstream = shared->second;
  const std::optional<std::string> only = upstream->use.only_session();
  if (only && only->empty()) return;  // of no particular session
  server.upstreams.erase(shared);
  if (!only) return let_go(upstream, "it is no longer shared");
  upstream->belong_to(*only);
  server.upstreams.emplace(*only, upstream);
}

// What has come to rest and will not be asked for by its key again.
void ServerRegistry::forget(ManagedUpstream& upstream) {
  const auto leaving = leaving_.find(upstream.spec().name);
  if (upstream.state() == State::stopped && leaving != leaving_.end()) {
    leaving->second.erase(upstream.shared_from_this());
    if (leaving->second.empty()) leaving_.erase(leaving);
  }
  if (upstream.key().empty() || upstream.state() != State::idle) return;
  const Result<Server*> server = find(upstream.spec().name);
  if (!server) return;
  const auto found = (*server)->upstreams.find(upstream.key());
  if (found != (*server)->upstreams.end() && found->second.get() == &upstream)
    (*server)->upstreams.erase(found);
}

// ---- status and shutdown -------------------------------------------------------------------------------

std::vector<UpstreamStatus> ServerRegistry::status() const {
  std::vector<UpstreamStatus> all;
  for (const auto& [name, server] : servers_) {
    for (const auto& [key, upstream] : server.upstreams) all.push_back(upstream->status());
    if (!server.upstreams.empty()) continue;
    UpstreamStatus none;
    none.server = name;
    none.state = server.enabled ? State::idle : State::stopped;
    none.sharing = server.state->sharing;
    none.sharing_evidence = server.state->evidence;
    all.push_back(std::move(none));
  }
  for (const auto& [name, upstreams] : leaving_) {
    for (const UpstreamPtr& upstream : upstreams) all.push_back(upstream->status());
  }
  return all;
}

std::optional<std::string> ServerRegistry::server_after(std::string_view name) const {
  const auto server = servers_.upper_bound(name);
  const auto leaving = leaving_.upper_bound(name);
  if (leaving == leaving_.end())
    return server == servers_.end() ? std::nullopt : std::optional(server->first);
  if (server == servers_.end()) return leaving->first;
  return std::min(server->first, leaving->first);
}

std::vector<std::shared_ptr<Upstream>> ServerRegistry::upstreams(std::string_view name) const {
  std::vector<std::shared_ptr<Upstream>> all;
  if (const auto server = servers_.find(name); server != servers_.end())
    std::ranges::copy(server->second.upstreams | std::views::values, std::back_inserter(all));
  if (const auto leaving = leaving_.find(name); leaving != leaving_.end())
    std::ranges::copy(leaving->second, std::back_inserter(all));
  return all;
}

Task<void> ServerRegistry::shut_down(std::chrono::milliseconds grace) {
  const auto keep = shared_from_this();
  shutting_down_ = true;
  Slices slices;
  std::vector<std::string> names;
  for (const auto& [name, server] : servers_) names.push_back(name);
  for (const std::string& name : names) {
    const auto found = servers_.find(name);
    if (found != servers_.end()) retire(found->second, "the pool shuts down");
    if (slices.due(0)) co_await sleep_for(core_->loop, Slices::kPause);
  }
  std::vector<UpstreamPtr> all;
  for (const auto& [name, upstreams] : leaving_) std::ranges::copy(upstreams, std::back_inserter(all));
  for (const UpstreamPtr& upstream : all) {
    upstream->lifecycle.retire("the pool shuts down", grace);
    if (slices.due(0)) co_await sleep_for(core_->loop, Slices::kPause);
  }
}

}  // namespace fairlead::pool
