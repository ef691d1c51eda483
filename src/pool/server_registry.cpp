#include "pool/server_registry.hpp"

#include <algorithm>
#include <iterator>
#include <ranges>

#include "base/extract_keys.hpp"
#include "fairlead/process/failure.hpp"
#include "loop/slices.hpp"
#include "pool/reference_resolver.hpp"

namespace fairlead::pool {

namespace {

// Returns the key of the upstream that serves `target`; empty for the shared one.
std::string upstream_key(Sharing sharing, const Target& target) {
  if (sharing == Sharing::shared) return {};
  return unshared_upstream_key(sharing, target.session, target.user);
}

// Starts only a shared server. Upstreams of a session or user are started by their first call, because the
// session or user is unknown before.
void start_if_keep_running(const std::shared_ptr<PoolCore>& core, ServerRegistry::Entry& server) {
  const bool shared = server.context->sharing == Sharing::shared;
  if (server.enabled && server.context->spec.keep_running && shared && server.upstreams.empty())
    server.upstreams.emplace("", ManagedUpstream::make(core, server.context, "", ""));
}

}  // namespace

std::shared_ptr<ServerRegistry> ServerRegistry::create(std::shared_ptr<PoolCore> core) {
  auto registry = std::make_shared<ServerRegistry>(std::move(core));
  registry->core_->on_inactive = [weak = registry->weak_from_this()](ManagedUpstream& upstream) {
    if (const auto self = weak.lock()) self->erase_inactive(upstream);
  };
  return registry;
}

// ---- servers ---------------------------------------------------------------------------------------------

Result<ServerRegistry::Entry*> ServerRegistry::find(std::string_view name) {
  const auto found = servers_.find(name);
  if (found == servers_.end()) {
    return with_failure_code(Error(ErrorKind::validation, "unknown server " + std::string(name)),
                             failure::unknown_server);
  }
  return &found->second;
}

ServerRegistry::Entry ServerRegistry::make_entry(ServerSpec spec) {
  Entry server;
  server.context =
      std::make_shared<ServerContext>(core_->loop, std::move(spec), core_->options.client.era_max_age);
  const ServerSpec& stored = server.context->spec;
  server.enabled = stored.enabled;
  core_->referenced_variables.set(stored.name, referenced_variables(stored));
  if (stored.sharing != Sharing::automatic) {
    server.context->sharing = stored.sharing;
  } else {
    server.context->on_stateful = [weak = weak_from_this(), name = stored.name](const std::string& evidence) {
      if (const auto self = weak.lock()) self->unshare(name, evidence);
    };
  }
  start_if_keep_running(core_, server);
  return server;
}

Result<void> ServerRegistry::add(ServerSpec spec) {
  if (servers_.contains(spec.name))
    return Error(ErrorKind::validation, "server " + spec.name + " already exists");
  std::string name = spec.name;
  servers_.emplace(std::move(name), make_entry(std::move(spec)));
  return {};
}

Result<void> ServerRegistry::update(ServerSpec spec) {
  const Result<Entry*> server = find(spec.name);
  if (!server) return server.error();
  retire_all(**server, "it was updated");
  // Whether the server was disabled by disable() and not by its spec.
  const bool disabled = (*server)->context->spec.enabled && !(*server)->enabled;
  **server = make_entry(std::move(spec));
  if (disabled) return disable((*server)->context->spec.name);
  return {};
}

Result<void> ServerRegistry::remove(std::string_view name) {
  const Result<Entry*> server = find(name);
  if (!server) return server.error();
  retire_all(**server, "it was removed");
  servers_.erase(servers_.find(name));
  core_->referenced_variables.erase(name);
  core_->options.monitor->remove_server(name);
  return {};
}

Result<void> ServerRegistry::disable(std::string_view name) {
  const Result<Entry*> server = find(name);
  if (!server) return server.error();
  (*server)->enabled = false;
  for (const auto& [key, upstream] : (*server)->upstreams)
    upstream->lifecycle.retire("it was disabled", upstream->spec().clocks.drain);
  return {};
}

Result<void> ServerRegistry::enable(std::string_view name) {
  const Result<Entry*> server = find(name);
  if (!server) return server.error();
  (*server)->enabled = true;
  for (const auto& [key, upstream] : (*server)->upstreams) upstream->lifecycle.restore();
  start_if_keep_running(core_, **server);
  return {};
}

Result<void> ServerRegistry::replace_upstreams(std::string_view name,
                                               const std::function<bool(const std::string& user)>& affects) {
  const Result<Entry*> found = find(name);
  if (!found) return found.error();
  Entry& server = **found;
  std::vector<UpstreamPtr> affected;
  for (const auto& [key, upstream] : server.upstreams) {
    if (affects(upstream->user)) affected.push_back(upstream);
  }
  for (const UpstreamPtr& upstream : affected) {
    server.upstreams.erase(upstream->key());
    retire_upstream(upstream, "a secret has changed");
  }
  if (!affected.empty()) start_if_keep_running(core_, server);
  return {};
}

void ServerRegistry::retire_all(Entry& server, std::string_view reason) {
  for (auto& [key, upstream] : std::exchange(server.upstreams, {})) retire_upstream(upstream, reason);
}

void ServerRegistry::retire_upstream(UpstreamPtr upstream, std::string_view reason) {
  retiring_[upstream->spec().name].insert(upstream);
  upstream->lifecycle.retire(reason, upstream->spec().clocks.drain);
}

// ---- upstreams -------------------------------------------------------------------------------------------

Result<ServerRegistry::UpstreamPtr> ServerRegistry::get_or_create_upstream(const Target& target) {
  if (shutting_down_)
    return with_failure_code(Error(ErrorKind::closed, "the pool is shutting down"), failure::draining);
  const auto found = servers_.find(target.server);
  if (found == servers_.end()) return find(target.server).error();
  Entry& server = found->second;
  if (!server.enabled) {
    return with_failure_code(Error(ErrorKind::connection_failed, "server " + target.server + " is disabled"),
                             failure::server_stopped);
  }
  const std::string key = upstream_key(server.context->sharing, target);
  const auto existing = server.upstreams.find(key);
  if (existing != server.upstreams.end()) return existing->second;
  // The upstream without a key serves clients of several users.
  UpstreamPtr upstream =
      ManagedUpstream::make(core_, server.context, key, key.empty() ? std::string() : target.user);
  server.upstreams.emplace(key, upstream);
  return upstream;
}

void ServerRegistry::unshare_if_stateful(const Target& target, std::string_view method) {
  if (method != "logging/setLevel" && method != "resources/subscribe") return;
  const Result<Entry*> server = find(target.server);
  if (!server || !(*server)->context->on_stateful || target.session.empty()) return;
  unshare(target.server, "a client sent " + std::string(method));
}

Task<void> ServerRegistry::end_sessions(std::set<std::string, std::less<>> sessions) {
  const auto self = shared_from_this();
  sessions.erase("");  // the key of shared upstreams
  Slices slices;
  std::string name;
  for (auto it = servers_.begin(); it != servers_.end(); it = servers_.upper_bound(name)) {
    name = it->first;
    Entry& server = it->second;
    std::vector<UpstreamPtr> ended;
    if (server.context->sharing == Sharing::per_session) ended = extract_keys(server.upstreams, sessions);
    const auto shared = server.upstreams.find("");
    if (shared != server.upstreams.end()) shared->second->use.on_sessions_ended(sessions);
    if (!ended.empty()) retiring_[name].insert(ended.begin(), ended.end());
    if (slices.due(0)) co_await sleep_for(core_->loop, Slices::kPause);
    for (const UpstreamPtr& upstream : ended) {
      upstream->lifecycle.retire("its session has ended", upstream->spec().clocks.drain);
      if (slices.due(0)) co_await sleep_for(core_->loop, Slices::kPause);
    }
  }
}

void ServerRegistry::unshare(const std::string& name, const std::string& evidence) {
  const Result<Entry*> found = find(name);
  if (!found || (*found)->context->sharing != Sharing::shared) return;
  Entry& server = **found;
  server.context->sharing = Sharing::per_session;
  server.context->sharing_evidence = evidence;
  core_->log().info("server is no longer shared", {{"server", name}, {"evidence", evidence}});
  if (core_->options.handlers.on_server_unshared)
    core_->loop.post([core = core_, name] { core->options.handlers.on_server_unshared(name); });
  const auto shared = server.upstreams.find("");
  if (shared == server.upstreams.end()) return;
  const UpstreamPtr upstream = shared->second;
  const std::optional<std::string> only_session = upstream->use.only_session();
  if (only_session && only_session->empty()) return;  // no session has used it yet
  server.upstreams.erase(shared);
  if (!only_session) return retire_upstream(upstream, "it is no longer shared");
  upstream->set_key(*only_session);
  server.upstreams.emplace(*only_session, upstream);
}

void ServerRegistry::erase_inactive(ManagedUpstream& upstream) {
  const auto retiring = retiring_.find(upstream.spec().name);
  if (upstream.state() == UpstreamState::stopped && retiring != retiring_.end()) {
    retiring->second.erase(upstream.shared_from_this());
    if (retiring->second.empty()) retiring_.erase(retiring);
  }
  if (upstream.key().empty() || upstream.state() != UpstreamState::idle) return;
  const Result<Entry*> server = find(upstream.spec().name);
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
    none.state = server.enabled ? UpstreamState::idle : UpstreamState::stopped;
    none.sharing = server.context->sharing;
    none.sharing_evidence = server.context->sharing_evidence;
    all.push_back(std::move(none));
  }
  for (const auto& [name, upstreams] : retiring_) {
    for (const UpstreamPtr& upstream : upstreams) all.push_back(upstream->status());
  }
  return all;
}

std::optional<std::string> ServerRegistry::server_after(std::string_view name) const {
  const auto server = servers_.upper_bound(name);
  const auto retiring = retiring_.upper_bound(name);
  if (retiring == retiring_.end())
    return server == servers_.end() ? std::nullopt : std::optional(server->first);
  if (server == servers_.end()) return retiring->first;
  return std::min(server->first, retiring->first);
}

std::vector<std::shared_ptr<Upstream>> ServerRegistry::upstreams(std::string_view name) const {
  std::vector<std::shared_ptr<Upstream>> all;
  if (const auto server = servers_.find(name); server != servers_.end())
    std::ranges::copy(server->second.upstreams | std::views::values, std::back_inserter(all));
  if (const auto retiring = retiring_.find(name); retiring != retiring_.end())
    std::ranges::copy(retiring->second, std::back_inserter(all));
  return all;
}

Task<void> ServerRegistry::shut_down(std::chrono::milliseconds grace) {
  const auto self = shared_from_this();
  shutting_down_ = true;
  Slices slices;
  std::vector<std::string> names;
  for (const auto& [name, server] : servers_) names.push_back(name);
  for (const std::string& name : names) {
    const auto found = servers_.find(name);
    if (found != servers_.end()) retire_all(found->second, "the pool shuts down");
    if (slices.due(0)) co_await sleep_for(core_->loop, Slices::kPause);
  }
  std::vector<UpstreamPtr> all;
  for (const auto& [name, upstreams] : retiring_) std::ranges::copy(upstreams, std::back_inserter(all));
  for (const UpstreamPtr& upstream : all) {
    upstream->lifecycle.retire("the pool shuts down", grace);
    if (slices.due(0)) co_await sleep_for(core_->loop, Slices::kPause);
  }
}

}  // namespace fairlead::pool
