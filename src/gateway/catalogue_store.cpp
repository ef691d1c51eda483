#include "gateway/catalogue_store.hpp"

#include <algorithm>
#include <utility>

#include "gateway/left_out_log.hpp"

namespace fairlead::gateway {

namespace {

bool same_list(const std::vector<json::Raw>& one, const std::vector<json::Raw>& other) {
  return std::ranges::equal(one, other,
                            [](const json::Raw& a, const json::Raw& b) { return a.text() == b.text(); });
}

const Listed& or_nothing(const std::shared_ptr<const Listed>& listed) {
  static const Listed kNothing;
  return listed ? *listed : kNothing;
}

bool has_uris(const Listed& listed) {
  return !listed.of(Kind::resources).empty() || !listed.of(Kind::templates).empty();
}

bool lists_differ(const ServerEntry& entry) {
  return std::ranges::any_of(entry.own, [&](const auto& own) {
    return own.second->listed && own.second->listed != entry.shared.listed;
  });
}

// Selects the clients that are shown the shared list of `entry`: those without an upstream of their own that
// has listed. Null, which selects all, if no client has one.
mcp::Concerns others_than_own(std::shared_ptr<const ServerEntry> entry) {
  if (!entry || entry->own.empty()) return nullptr;
  return [entry = std::move(entry)](std::string_view session, const Principal& principal) {
    return !entry->own_lists(session, principal.user);
  };
}

}  // namespace

bool same_entries(const Listed& one, const Listed& other) {
  return std::ranges::all_of(kKinds, [&](Kind kind) {
    return one.missing(kind) == other.missing(kind) && same_list(one.of(kind), other.of(kind));
  });
}

CatalogueStore::CatalogueStore(Loop& loop, std::shared_ptr<const ServerTable> servers, mcp::Server front,
                               Log log)
    : loop_(loop),
      servers_(std::move(servers)),
      log_(std::move(log)),
      announcer_(std::make_shared<ListAnnouncer>(loop, std::move(front))) {}

void CatalogueStore::publish(ServerEntry& entry, std::shared_ptr<const Listed> listed) {
  loop_.turns().label("lists of server " + entry.name());
  if (entry.shared.listed && same_entries(*entry.shared.listed, *listed)) return;
  const std::shared_ptr<const Listed> before = std::exchange(entry.shared.listed, std::move(listed));
  outdate();
  log_left_out(log_, or_nothing(before), *entry.shared.listed);
  if (has_uris(*entry.shared.listed))
    loop_.spawn(log_duplicate_uris(loop_, log_, servers_, entry.shared.listed, before));
  announce(or_nothing(before), *entry.shared.listed, others_than_own(servers_->find(entry.name())));
}

void CatalogueStore::publish_own(const ServerEntry& entry, const std::string& key, ListCache& cache,
                                 std::shared_ptr<const Listed> listed) {
  loop_.turns().label("lists of server " + entry.name());
  const auto found = entry.own.find(key);
  if (found == entry.own.end() || found->second.get() != &cache) return;  // its session has ended
  // Most list what all list, and that need not be kept once more.
  const bool usual = entry.shared.listed && same_entries(*listed, *entry.shared.listed);
  const auto before = cache.listed ? cache.listed : entry.shared.listed;
  cache.listed = usual ? entry.shared.listed : std::move(listed);
  drop_views();
  announce(or_nothing(before), *cache.listed,
           [per_user = entry.per_user(), key](std::string_view session, const Principal& principal) {
             return (per_user ? std::string_view(principal.user) : session) == key;
           });
}

void CatalogueStore::withdraw(const std::shared_ptr<const Listed>& before) {
  outdate();
  if (before) announce(*before, Listed(), nullptr);
}

void CatalogueStore::outdate() noexcept {
  current_ = nullptr;
  drop_views();
}

const std::shared_ptr<const Catalogue>& CatalogueStore::current() {
  if (current_) return current_;
  Lists lists;
  for (const auto& [name, entry] : servers_->by_name()) {
    if (entry->shared.listed) lists.emplace_hint(lists.end(), name, entry->shared.listed);
  }
  current_ = std::make_shared<const Catalogue>(lists);
  return current_;
}

// Clients hear of a list only when what they would see is not what they saw.
void CatalogueStore::announce(const Listed& before, const Listed& now, const mcp::Concerns& concerns) {
  if (!complete_.is_set()) return;  // nobody has been shown a whole list yet
  const auto differs = [&](Kind kind) { return !same_list(before.of(kind), now.of(kind)); };
  if (differs(Kind::tools)) announcer_->changed(mcp::ListKind::tools, concerns);
  if (differs(Kind::prompts)) announcer_->changed(mcp::ListKind::prompts, concerns);
  if (differs(Kind::resources) || differs(Kind::templates))
    announcer_->changed(mcp::ListKind::resources, concerns);
}

// ---- views -----------------------------------------------------------------------------------------------

std::shared_ptr<const Catalogue> CatalogueStore::view(std::string_view session, const Principal& principal) {
  if (!views_differ()) return current();
  std::pair<std::string, std::string> key(session, principal.user);
  if (const auto found = views_.find(key); found != views_.end()) return found->second;
  Lists lists;
  bool differs = false;
  for (const auto& [name, entry] : servers_->by_name()) {
    const std::shared_ptr<const Listed> own = entry->own_lists(session, principal.user);
    differs = differs || (own && own != entry->shared.listed);
    if (own || entry->shared.listed) lists[name] = own ? own : entry->shared.listed;
  }
  auto made = differs ? std::make_shared<const Catalogue>(lists) : current();
  views_.emplace(std::move(key), made);
  return made;
}

void CatalogueStore::drop_views() noexcept {
  views_.clear();
  views_differ_ = std::nullopt;
}

bool CatalogueStore::views_differ() {
  if (!views_differ_)
    views_differ_ =
        std::ranges::any_of(servers_->by_name(), [](const auto& one) { return lists_differ(*one.second); });
  return *views_differ_;
}

}  // namespace fairlead::gateway
