#include "gateway/catalogue_store.hpp"

#include <algorithm>
#include <utility>

#include "gateway/omitted_entries_log.hpp"

namespace fairlead::gateway {

namespace {

bool same_raw_entries(const std::vector<json::Raw>& a, const std::vector<json::Raw>& b) {
  return std::ranges::equal(a, b,
                            [](const json::Raw& x, const json::Raw& y) { return x.text() == y.text(); });
}

const ServerLists& lists_or_empty(const std::shared_ptr<const ServerLists>& lists) {
  static const ServerLists kEmpty;
  return lists ? *lists : kEmpty;
}

bool has_uris(const ServerLists& lists) {
  return !lists.raw_entries(ListKind::resources).empty() || !lists.raw_entries(ListKind::templates).empty();
}

// Returns whether some session or user has unshared lists of this server that differ from the shared ones.
// publish_unshared() stores equal lists only once, so pointers are compared.
bool unshared_lists_differ(const ServerEntry& entry) {
  return std::ranges::any_of(entry.unshared, [&](const auto& cached) {
    return cached.second->lists && cached.second->lists != entry.shared.lists;
  });
}

// Returns a predicate that selects the clients that see the shared lists of `entry`: the server is visible to
// them at their endpoint, and they have no unshared upstream whose lists have been fetched.
ListChangeNotifier::Affected clients_of_shared_lists(std::shared_ptr<const ServerEntry> entry) {
  return [entry = std::move(entry)](const EndpointScope& scope, std::string_view session,
                                    const Principal& principal) {
    return ClientScope{scope, principal}.offers(*entry) &&
           (entry->unshared.empty() || !entry->unshared_lists(session, principal.user));
  };
}

}  // namespace

bool same_lists(const ServerLists& a, const ServerLists& b) {
  return same_rules(a.rules(), b.rules()) && same_raw_lists(a, b);
}

bool same_raw_lists(const ServerLists& a, const ServerLists& b) {
  return std::ranges::all_of(kListKinds, [&](ListKind kind) {
    return a.missing_reason(kind) == b.missing_reason(kind) &&
           same_raw_entries(a.raw_entries(kind), b.raw_entries(kind));
  });
}

CatalogueStore::CatalogueStore(Loop& loop, std::shared_ptr<const ServerTable> servers,
                               const mcp::Server& front, Log log)
    : loop_(loop),
      servers_(std::move(servers)),
      log_(std::move(log)),
      list_notifier_(std::make_shared<ListChangeNotifier>(loop)) {
  list_notifier_->add_front(front, all_servers_);
}

void CatalogueStore::publish_shared(ServerEntry& entry, std::shared_ptr<const ServerLists> lists) {
  loop_.turn_meter().label("lists of server " + entry.name());
  if (entry.shared.lists && same_lists(*entry.shared.lists, *lists)) return;
  replace_shared(entry, std::move(lists));
}

void CatalogueStore::replace_shared(ServerEntry& entry, std::shared_ptr<const ServerLists> lists) {
  const std::shared_ptr<const ServerLists> before = std::exchange(entry.shared.lists, std::move(lists));
  invalidate();
  log_omitted_entries(log_, lists_or_empty(before), *entry.shared.lists);
  if (has_uris(*entry.shared.lists))
    loop_.spawn(log_duplicate_uris(loop_, log_, servers_, entry.shared.lists, before));
  notify_clients(lists_or_empty(before), *entry.shared.lists,
                 clients_of_shared_lists(servers_->find(entry.name())));
}

void CatalogueStore::publish_unshared(const ServerEntry& entry, const std::string& key, ListCache& cache,
                                      std::shared_ptr<const ServerLists> lists) {
  loop_.turn_meter().label("lists of server " + entry.name());
  const auto found = entry.unshared.find(key);
  if (found == entry.unshared.end() || found->second.get() != &cache) return;  // the session has ended
  // Most unshared upstreams list the same entries as the shared one; the equal lists are stored only once.
  const bool same_as_shared = entry.shared.lists && same_lists(*lists, *entry.shared.lists);
  const auto before = cache.lists ? cache.lists : entry.shared.lists;
  cache.lists = same_as_shared ? entry.shared.lists : std::move(lists);
  drop_views();
  notify_clients(lists_or_empty(before), *cache.lists,
                 [sharing = entry.spec.sharing, key](const EndpointScope&, std::string_view session,
                                                     const Principal& principal) {
                   return pool::unshared_upstream_key(sharing, session, principal.user) == key;
                 });
}

void CatalogueStore::withdraw(const ServerEntry& former) {
  invalidate();
  if (!former.shared.lists) return;
  notify_clients(*former.shared.lists, ServerLists(),
                 [name = former.name(), policy = former.policy](const EndpointScope& scope, std::string_view,
                                                                const Principal& principal) {
                   return ClientScope{scope, principal}.offers(name, *policy);
                 });
}

void CatalogueStore::apply_policy(const ServerEntry& entry, ServerPolicyPtr former) {
  invalidate();
  if (!entry.shared.lists) return;
  notify_clients(*entry.shared.lists, ServerLists(),
                 [name = entry.name(), former = std::move(former), policy = entry.policy](
                     const EndpointScope& scope, std::string_view, const Principal& principal) {
                   const ClientScope client{scope, principal};
                   return client.offers(name, *former) != client.offers(name, *policy);
                 });
}

void CatalogueStore::invalidate() noexcept {
  current_ = nullptr;
  drop_views();
}

const std::shared_ptr<const Catalogue>& CatalogueStore::current() {
  if (current_) return current_;
  std::vector<Catalogue::ListedServer> servers;
  servers.reserve(servers_->by_name().size());
  for (const auto& [name, entry] : servers_->by_name()) {
    if (entry->shared.lists) servers.push_back(Catalogue::ListedServer{name, entry->shared.lists});
  }
  current_ = std::make_shared<const Catalogue>(std::move(servers), Catalogue::Names());
  return current_;
}

// Clients are notified only of the kinds of lists whose entries have changed.
void CatalogueStore::notify_clients(const ServerLists& before, const ServerLists& now,
                                    const ListChangeNotifier::Affected& affected) {
  if (!initial_fetch_done_.is_set()) return;  // no client has received a list yet
  const auto differs = [&](ListKind kind) {
    return !same_raw_entries(before.raw_entries(kind), now.raw_entries(kind)) ||
           (!now.raw_entries(kind).empty() && !same_rules(before.rules(), now.rules()));
  };
  if (differs(ListKind::tools)) list_notifier_->notify_changed(ListKind::tools, affected);
  if (differs(ListKind::prompts)) list_notifier_->notify_changed(ListKind::prompts, affected);
  if (differs(ListKind::resources) || differs(ListKind::templates))
    list_notifier_->notify_changed(ListKind::resources, affected);
}

// ---- views -----------------------------------------------------------------------------------------------

std::shared_ptr<const Catalogue> CatalogueStore::view(const EndpointScope& scope, std::string_view session,
                                                      const Principal& principal) {
  const bool unshared = any_unshared_lists_differ();
  if (!unshared && scope.is_plain() && servers_->all_visible()) return current();
  ViewKey key;
  key.scope = scope.is_plain() ? all_servers_->id() : scope.id();
  key.visibility_class = servers_->visibility_class(principal);
  if (unshared) {
    key.session = session;
    key.user = principal.user;
  }
  if (const auto found = views_.find(key); found != views_.end()) return found->second;
  auto catalogue = build_view(scope, session, principal);
  store_view(std::move(key), catalogue);
  return catalogue;
}

std::shared_ptr<const Catalogue> CatalogueStore::build_view(const EndpointScope& scope,
                                                            std::string_view session,
                                                            const Principal& principal) {
  const ClientScope client{scope, principal};
  std::vector<Catalogue::ListedServer> listed;
  bool differs = !scope.is_plain();
  const auto add = [&](const ServerEntry& entry) {
    const std::shared_ptr<const ServerLists> unshared = entry.unshared_lists(session, principal.user);
    const std::shared_ptr<const ServerLists>& lists = unshared ? unshared : entry.shared.lists;
    differs = differs || lists != entry.shared.lists || !client.offers(entry);
    if (lists && client.offers(entry))
      listed.push_back(Catalogue::ListedServer{entry.name(), lists_at(scope, lists)});
  };
  if (const std::string* const name = scope.single_server()) {
    if (const auto entry = servers_->find(*name)) add(*entry);
  } else {
    for (const auto& [name_of_server, entry] : servers_->by_name()) add(*entry);
  }
  if (!differs) return current();
  Catalogue::Names names;
  names.own = scope.single_server() != nullptr;
  if (const auto* const renames = scope.renames()) names.renames = *renames;
  names.listed_tools = scope.listed_tools();
  return std::make_shared<const Catalogue>(std::move(listed), std::move(names));
}

std::shared_ptr<const ServerLists> CatalogueStore::lists_at(const EndpointScope& scope,
                                                            const std::shared_ptr<const ServerLists>& lists) {
  if (!scope.changes_names()) return lists;
  std::optional<std::shared_ptr<const ServerLists>> derived = lists->find_derived(scope.id());
  if (!derived) {
    derived = derive_lists(scope, *lists);
    lists->store_derived(scope.id(), *derived);
  }
  return *derived ? *derived : lists;
}

// Returns null if the endpoint offers the same entries under the same names.
std::shared_ptr<const ServerLists> CatalogueStore::derive_lists(const EndpointScope& scope,
                                                                const ServerLists& lists) {
  const ListRules* const rules = lists.rules().get();
  const bool same = std::ranges::all_of(kListKinds, [&](ListKind kind) {
    return std::ranges::all_of(lists.entries(kind), [&](const CatalogueEntry& entry) {
      return scope.name_of(kind, entry, rules) == entry.public_name;
    });
  });
  if (same) return nullptr;
  const std::shared_ptr<ServerLists> derived = make_lists();
  derived->add_offered(
      lists, [&](ListKind kind, const CatalogueEntry& entry) { return scope.name_of(kind, entry, rules); });
  log_omitted_entries(log_, ServerLists(), *derived);
  return derived;
}

void CatalogueStore::store_view(ViewKey key, const std::shared_ptr<const Catalogue>& view) {
  for (const std::string& name : view->unused_names())
    log_.warning("entry omitted", {{"problem", "the new name `" + name + "` is already in use"}});
  cached_view_servers_ += view->servers().size() + 1;
  while (!views_.empty() && cached_view_servers_ > kMaxCachedViewServers) {
    const auto evicted = views_.begin();
    cached_view_servers_ -= evicted->second->servers().size() + 1;
    views_.erase(evicted);
  }
  views_.emplace(std::move(key), view);
}

void CatalogueStore::drop_views() noexcept {
  views_.clear();
  cached_view_servers_ = 0;
  any_unshared_lists_differ_ = std::nullopt;
}

bool CatalogueStore::any_unshared_lists_differ() {
  if (!any_unshared_lists_differ_)
    any_unshared_lists_differ_ = std::ranges::any_of(
        servers_->by_name(), [](const auto& server) { return unshared_lists_differ(*server.second); });
  return *any_unshared_lists_differ_;
}

}  // namespace fairlead::gateway
