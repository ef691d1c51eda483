#include "admin/registry_sync.hpp"

#include <utility>
#include <variant>

#include "admin/gateway_settings.hpp"
#include "fairlead/loop/timer.hpp"
#include "loop/slices.hpp"
#include "registry/configuration.hpp"
#include "registry/secret_lookup.hpp"

namespace fairlead::admin {

namespace {

constexpr std::string_view kAllowPrivateAddresses = "registry.allow_private_addresses";
// What Slices counts for putting one server: about ten servers in one slice.
constexpr std::size_t kBytesPerPut = Slices::kBytesPerSlice / 10;

gateway::ServerPolicy policy_of(const registry::Server& server) {
  gateway::ServerPolicy policy;
  policy.visibility = server.visibility;
  policy.owner = server.owner;
  policy.domain = server.domain;
  policy.title = server.title;
  policy.description = server.description;
  policy.tags = server.tags;
  policy.tools = server.tools;
  // gateway_spec() may set `per_user`; then clients without a user get the values of the server and the
  // system.
  policy.admits_clients_without_user = server.spec.sharing != pool::Sharing::per_user;
  return policy;
}

registry::FetchedEntries to_entries(const gateway::FetchedLists& lists) {
  registry::FetchedEntries entries;
  entries.tools = lists.tools;
  entries.resources = lists.resources;
  entries.templates = lists.templates;
  entries.prompts = lists.prompts;
  return entries;
}

}  // namespace

pool::ServerSpec gateway_spec(const registry::Server& server, const registry::State& state) {
  pool::ServerSpec spec = server.spec;
  spec.clocks = registry::with_clock_defaults(spec.clocks, *state.configuration);
  const bool may_be_shared =
      spec.sharing == pool::Sharing::automatic || spec.sharing == pool::Sharing::shared;
  if (may_be_shared && registry::has_user_values(state, server)) spec.sharing = pool::Sharing::per_user;
  auto* const address = std::get_if<pool::Address>(&spec.transport);
  if (!address || server.owner.empty()) return spec;
  const auto owner = state.users.find(server.owner);
  const bool trusted = owner && owner->role == registry::Role::admin;
  address->public_addresses_only = !trusted && !state.configuration->boolean(kAllowPrivateAddresses);
  return spec;
}

std::shared_ptr<RegistrySync> RegistrySync::start(Loop& loop, std::shared_ptr<registry::Registry> registry,
                                                  gateway::Gateway& gateway, ApplySettings apply_settings,
                                                  Log log) {
  std::shared_ptr<RegistrySync> sync(
      new RegistrySync(loop, std::move(registry), gateway, std::move(apply_settings), std::move(log)));
  sync->subscribe();
  sync->apply_all();
  return sync;
}

void RegistrySync::stop() {
  if (subscriptions_.empty()) return;
  subscriptions_.clear();
  gateway_.on_lists(nullptr);
}

void RegistrySync::subscribe() {
  gateway_.on_lists([weak = weak_from_this()](const std::string& server, const gateway::FetchedLists& lists) {
    const auto self = weak.lock();
    return self ? self->on_fetched(server, lists) : registry::StoredListsPtr();
  });
  subscriptions_.push_back(registry_->on_change([this](const registry::Change& change) { apply(change); }));
  subscriptions_.push_back(registry_->on_lists_change([this](const registry::ListsChange& change) {
    if (const auto server = registry_->state().servers.find(change.server_id)) put_server(*server);
  }));
}

void RegistrySync::apply_all() {
  const registry::State& state = registry_->state();
  for (const auto& [id, server] : state.servers.by_id()) put_server(*server);
  for (const auto& [id, endpoint] : state.endpoints.by_id()) put_endpoint(*endpoint);
}

void RegistrySync::apply(const registry::Change& change) {
  if (const auto* const server = std::get_if<registry::RowChange<registry::Server>>(&change))
    return apply_server(*server);
  if (const auto* const endpoint = std::get_if<registry::RowChange<registry::Endpoint>>(&change))
    return apply_endpoint(*endpoint);
  if (const auto* const user = std::get_if<registry::RowChange<registry::User>>(&change))
    return apply_user(*user);
  if (const auto* const secret = std::get_if<registry::RowChange<registry::Secret>>(&change))
    return apply_secret(*secret);
  if (const auto* const values = std::get_if<registry::RowChange<registry::Configuration>>(&change))
    apply_configuration(*values);
}

// A server whose name has changed is another server for clients: its tools have other names.
void RegistrySync::apply_server(const registry::RowChange<registry::Server>& change) {
  const bool name_is_free = !change.after || (change.before && change.before->name != change.after->name);
  // With two renames at once, another server may have the name by now.
  const bool reused = change.before && registry_->state().servers.find_by_name(change.before->name);
  if (change.before && name_is_free && !reused) {
    const Result<void> removed = gateway_.remove_server(change.before->name);
    if (!removed) log_.warning("server not removed", {{"reason", removed.error().message()}});
  }
  if (!change.after) return;
  put_server(*change.after);
  if (change.before && untrusted_owner(*change.before) != untrusted_owner(*change.after))
    replace_upstreams_with_secrets(*change.after);
}

std::string RegistrySync::untrusted_owner(const registry::Server& server) const {
  return registry::has_untrusted_owner(registry_->state(), server) ? server.owner : std::string();
}

void RegistrySync::put_server(const registry::Server& server) {
  const registry::State& state = registry_->state();
  const auto lists = state.lists.find(server.id);
  const Result<void> put = gateway_.put_server(gateway_spec(server, state), policy_of(server),
                                               lists == state.lists.end() ? nullptr : lists->second);
  if (!put) log_.error("server not usable", {{"server", server.name}, {"reason", put.error().message()}});
}

void RegistrySync::put_endpoint(const registry::Endpoint& endpoint) {
  const Result<void> put = gateway_.endpoints().put(endpoint);
  if (!put)
    log_.error("endpoint not usable", {{"endpoint", endpoint.name}, {"reason", put.error().message()}});
}

void RegistrySync::apply_endpoint(const registry::RowChange<registry::Endpoint>& change) {
  const bool renamed = change.before && change.after && change.before->name != change.after->name;
  const bool gone = change.before && (!change.after || renamed);
  if (gone && !registry_->state().endpoints.find_by_name(change.before->name))
    gateway_.endpoints().remove(change.before->name);
  if (change.after) put_endpoint(*change.after);
}

// The role of a user decides which addresses the user's servers may connect to, and whose secrets they get.
void RegistrySync::apply_user(const registry::RowChange<registry::User>& change) {
  if (!change.before || !change.after || change.before->role == change.after->role) return;
  const auto is_owned = [owner = change.after->id](const registry::Server& server) {
    return server.owner == owner;
  };
  loop_.spawn(put_servers(shared_from_this(), is_owned, true));
}

Task<void> RegistrySync::put_servers(std::shared_ptr<RegistrySync> self, ServerSelector selected,
                                     bool other_secrets) {
  std::vector<std::string> ids;
  for (const auto& [id, server] : self->registry_->state().servers.by_id()) {
    if (selected(*server)) ids.push_back(id);
  }
  Slices slices;
  for (const std::string& id : ids) {
    if (self->subscriptions_.empty()) co_return;  // stopped
    if (const auto server = self->registry_->state().servers.find(id)) {
      self->put_server(*server);
      if (other_secrets) self->replace_upstreams_with_secrets(*server);
    }
    if (slices.due(kBytesPerPut)) co_await sleep_for(self->loop_, Slices::kPause);
  }
}

void RegistrySync::apply_secret(const registry::RowChange<registry::Secret>& change) {
  const registry::SecretPtr secret = change.after ? change.after : change.before;
  if (secret->server.empty()) {
    loop_.spawn(apply_system_secret(shared_from_this(), secret));
  } else if (const auto server = registry_->state().servers.find(secret->server)) {
    replace_upstreams(*server, *secret);
  }
}

Task<void> RegistrySync::apply_system_secret(std::shared_ptr<RegistrySync> self, registry::SecretPtr secret) {
  std::vector<std::string> ids;
  for (const auto& [id, server] : self->registry_->state().servers.by_id()) ids.push_back(id);
  Slices slices;
  for (const std::string& id : ids) {
    if (self->subscriptions_.empty()) co_return;  // stopped
    if (const auto server = self->registry_->state().servers.find(id))
      self->replace_upstreams(*server, *secret);
    if (slices.due(0)) co_await sleep_for(self->loop_, Slices::kPause);
  }
}

// Only upstreams that got the value, or would get it now, are replaced.
void RegistrySync::replace_upstreams(const registry::Server& server, const registry::Secret& secret) {
  const registry::State& state = registry_->state();
  if (!registry::refers_to_secret(server.spec, secret.name)) return;
  // The first value of a user separates the users, the last one joins them.
  if (!secret.user.empty()) put_server(server);
  const auto affects = [&](const std::string& user) {
    if (!secret.user.empty()) return user == secret.user || registry::has_untrusted_owner(state, server);
    const registry::SecretSource source = registry::find_secret(state, server, user, secret.name).source;
    return source != registry::SecretSource::user &&
           (!secret.server.empty() || source != registry::SecretSource::server);
  };
  replace_upstreams(server, affects);
}

void RegistrySync::replace_upstreams_with_secrets(const registry::Server& server) {
  if (registry::referenced_secrets(server.spec).empty()) return;
  replace_upstreams(server, [](const std::string&) { return true; });
}

void RegistrySync::replace_upstreams(const registry::Server& server,
                                     const std::function<bool(const std::string& user)>& affects) {
  const Result<void> replaced = gateway_.pool().replace_upstreams(server.name, affects);
  if (!replaced) log_.warning("server not restarted", {{"reason", replaced.error().message()}});
  // A server that lacked the value could not be listed.
  if (server.enabled && !registry_->state().lists.contains(server.id))
    loop_.spawn(list_again(shared_from_this(), server.name));
}

Task<void> RegistrySync::list_again(std::shared_ptr<RegistrySync> self, std::string server) {
  const Result<gateway::ToolChanges> listed = co_await self->gateway_.refresh(server);
  if (!listed)
    self->log_.debug("server not listed", {{"server", server}, {"reason", listed.error().message()}});
}

void RegistrySync::apply_configuration(const registry::RowChange<registry::Configuration>& change) {
  apply_settings_(*change.after);
  const auto allowed = [](const registry::ConfigurationPtr& values) {
    return values && values->boolean(kAllowPrivateAddresses);
  };
  const auto clocks = [](const registry::ConfigurationPtr& values) {
    return values ? registry::with_clock_defaults(pool::Clocks(), *values) : pool::Clocks();
  };
  const bool other_clocks = clocks(change.before) != clocks(change.after);
  if (!other_clocks && allowed(change.before) == allowed(change.after)) return;
  const auto is_affected = [other_clocks](const registry::Server& server) {
    return other_clocks || !server.owner.empty();
  };
  loop_.spawn(put_servers(shared_from_this(), is_affected, false));
}

// The lists are stored later; which entries are quarantined is decided now, before clients see them.
registry::StoredListsPtr RegistrySync::on_fetched(const std::string& name,
                                                  const gateway::FetchedLists& lists) {
  const auto server = registry_->state().servers.find_by_name(name);
  if (!server) return nullptr;
  registry::FetchedEntries entries = to_entries(lists);
  registry::StoredListsPtr offered = registry_->preview_lists(server->id, entries);
  if (!lists.to_be_stored) return offered;
  ++stores_in_progress_[server->id].count;
  loop_.spawn(store_lists(shared_from_this(), server->id, std::move(entries)));
  return offered;
}

Task<void> RegistrySync::lists_stored(std::shared_ptr<RegistrySync> self, std::string server_id) {
  const auto found = self->stores_in_progress_.find(server_id);
  if (found == self->stores_in_progress_.end()) co_return;
  const std::shared_ptr<Event> ended = found->second.ended;
  co_await ended->wait(self->loop_, kMaxStoreWait);
}

void RegistrySync::store_has_ended(const std::string& server_id) {
  const auto found = stores_in_progress_.find(server_id);
  if (--found->second.count > 0) return;
  const std::shared_ptr<Event> ended = found->second.ended;
  stores_in_progress_.erase(found);
  ended->set();
}

Task<void> RegistrySync::store_lists(std::shared_ptr<RegistrySync> self, std::string server_id,
                                     registry::FetchedEntries lists) {
  const Result<registry::StoredListsPtr> stored =
      co_await self->registry_->store_lists(server_id, std::move(lists));
  self->store_has_ended(server_id);
  if (stored || stored.error().detail().failure_code == registry::kNotFound) co_return;
  self->log_.warning("lists of a server not stored",
                     {{"server_id", server_id}, {"reason", stored.error().message()}});
}

}  // namespace fairlead::admin
