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

// Returns a predicate that selects the clients that see the shared lists of `entry`, because they have no
// unshared upstream whose lists have been fetched. Returns null, which selects all clients, if no client has
// an unshared upstream.
mcp::ClientPredicate clients_without_unshared_lists(std::shared_ptr<const ServerEntry> entry) {
  if (!entry || entry->unshared.empty()) return nullptr;
  return [entry = std::move(entry)](std::string_view session, const Principal& principal) {
    return !entry->unshared_lists(session, principal.user);
  };
}

}  // namespace

bool same_lists(const ServerLists& a, const ServerLists& b) {
  return std::ranges::all_of(kListKinds, [&](ListKind kind) {
    return a.missing_reason(kind) == b.missing_reason(kind) &&
           same_raw_entries(a.raw_entries(kind), b.raw_entries(kind));
  });
}

CatalogueStore::CatalogueStore(Loop& loop, std::shared_ptr<const ServerTable> servers, mcp::Server front,
                               Log log)
    : loop_(loop),
      servers_(std::move(servers)),
      log_(std::move(log)),
      list_notifier_(std::make_shared<ListChangeNotifier>(loop, std::move(front))) {}

void CatalogueStore::publish_shared(ServerEntry& entry, std::shared_ptr<const ServerLists> lists) {
  loop_.turn_meter().label("lists of server " + entry.name());
  if (entry.shared.lists && same_lists(*entry.shared.lists, *lists)) return;
  const std::shared_ptr<const ServerLists> before = std::exchange(entry.shared.lists, std::move(lists));
  invalidate();
  log_omitted_entries(log_, lists_or_empty(before), *entry.shared.lists);
  if (has_uris(*entry.shared.lists))
    loop_.spawn(log_duplicate_uris(loop_, log_, servers_, entry.shared.lists, before));
  notify_clients(lists_or_empty(before), *entry.shared.lists,
                 clients_without_unshared_lists(servers_->find(entry.name())));
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
                 [per_user = entry.per_user(), key](std::string_view session, const Principal& principal) {
                   return (per_user ? std::string_view(principal.user) : session) == key;
                 });
}

void CatalogueStore::withdraw(const std::shared_ptr<const ServerLists>& before) {
  invalidate();
  if (before) notify_clients(*before, ServerLists(), nullptr);
}

void CatalogueStore::invalidate() noexcept {
  current_ = nullptr;
  drop_views();
}

const std::shared_ptr<const Catalogue>& CatalogueStore::current() {
  if (current_) return current_;
  ListsByServer lists;
  for (const auto& [name, entry] : servers_->by_name()) {
    if (entry->shared.lists) lists.emplace_hint(lists.end(), name, entry->shared.lists);
  }
  current_ = std::make_shared<const Catalogue>(lists);
  return current_;
}

// Clients are notified only of the kinds of lists whose entries have changed.
void CatalogueStore::notify_clients(const ServerLists& before, const ServerLists& now,
                                    const mcp::ClientPredicate& affected) {
  if (!initial_fetch_done_.is_set()) return;  // no client has received a list yet
  const auto differs = [&](ListKind kind) {
    return !same_raw_entries(before.raw_entries(kind), now.raw_entries(kind));
  };
  if (differs(ListKind::tools)) list_notifier_->notify_changed(ListKind::tools, affected);
  if (differs(ListKind::prompts)) list_notifier_->notify_changed(ListKind::prompts, affected);
  if (differs(ListKind::resources) || differs(ListKind::templates))
    list_notifier_->notify_changed(ListKind::resources, affected);
}

// ---- views -----------------------------------------------------------------------------------------------

std::shared_ptr<const Catalogue> CatalogueStore::view(std::string_view session, const Principal& principal) {
  if (!any_unshared_lists_differ()) return current();
  std::pair<std::string, std::string> key(session, principal.user);
  if (const auto found = views_.find(key); found != views_.end()) return found->second;
  ListsByServer lists;
  bool differs = false;
  for (const auto& [name, entry] : servers_->by_name()) {
    const std::shared_ptr<const ServerLists> unshared = entry->unshared_lists(session, principal.user);
    differs = differs || (unshared && unshared != entry->shared.lists);
    if (unshared || entry->shared.lists) lists[name] = unshared ? unshared : entry->shared.lists;
  }
  auto catalogue = differs ? std::make_shared<const Catalogue>(lists) : current();
  views_.emplace(std::move(key), catalogue);
  return catalogue;
}

void CatalogueStore::drop_views() noexcept {
  views_.clear();
  any_unshared_lists_differ_ = std::nullopt;
}

bool CatalogueStore::any_unshared_lists_differ() {
  if (!any_unshared_lists_differ_)
    any_unshared_lists_differ_ = std::ranges::any_of(
        servers_->by_name(), [](const auto& server) { return unshared_lists_differ(*server.second); });
  return *any_unshared_lists_differ_;
}

}  // namespace fairlead::gateway
