// CatalogueStore: owns the catalogues that clients see. The current catalogue has all servers; clients that
// see fewer servers, other names, or the lists of an unshared upstream have a catalogue of their own, a view.
// Notifies clients of list changes. Private to the layer.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "fairlead/base/log.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/mcp/server.hpp"
#include "gateway/catalogue.hpp"
#include "gateway/endpoint_scope.hpp"
#include "gateway/list_change_notifier.hpp"
#include "gateway/list_reclaimer.hpp"
#include "gateway/server_table.hpp"

namespace fairlead::gateway {

// Returns whether two versions of a server's lists have the same entries in the same order and the same
// rules, and the same lists are missing for the same reasons.
bool same_lists(const ServerLists& a, const ServerLists& b);
// Does not compare the rules.
bool same_raw_lists(const ServerLists& a, const ServerLists& b);

class CatalogueStore {
 public:
  CatalogueStore(Loop& loop, std::shared_ptr<const ServerTable> servers, const mcp::Server& front, Log log);

  // Views are kept for later requests as long as they have at most this many servers together
  // (max_cached_view_servers).
  static constexpr std::size_t kMaxCachedViewServers = 1'000'000;

  // Adds the clients of an endpoint to those that are notified of changes.
  void add_front(const mcp::Server& front, std::shared_ptr<const EndpointScope> scope) {
    list_notifier_->add_front(front, std::move(scope));
  }
  // Returns the catalogue of all servers, for clients that have no unshared upstream. Builds it if lists have
  // changed since the last call.
  const std::shared_ptr<const Catalogue>& current();
  // Returns what this session and principal see at an endpoint. Everything that a client lists or calls is
  // looked up in this catalogue. It is current() if the endpoint has all servers, all of them are visible to
  // the principal, and no unshared upstream has other entries.
  std::shared_ptr<const Catalogue> view(const EndpointScope& scope, std::string_view session,
                                        const Principal& principal);
  // The view of an endpoint that has all servers.
  std::shared_ptr<const Catalogue> view(std::string_view session, const Principal& principal) {
    return view(*all_servers_, session, principal);
  }

  // Store newly fetched lists of `entry`, and notify the clients that see them if the entries have changed.
  // publish_shared() is for the lists that all clients share. publish_unshared() is for those of the session
  // or user `key`; it stores them in `cache`, and does nothing if `cache` is no longer the cache of `key`.
  void publish_shared(ServerEntry& entry, std::shared_ptr<const ServerLists> lists);
  void publish_unshared(const ServerEntry& entry, const std::string& key, ListCache& cache,
                        std::shared_ptr<const ServerLists> lists);
  // Replaces the shared lists by lists of the same entries to which other rules were applied.
  void replace_shared(ServerEntry& entry, std::shared_ptr<const ServerLists> lists);
  // Called when a server has been removed from the server table or disabled. From now on the catalogues omit
  // its lists; clients are notified. `former` is the entry that the server had.
  void withdraw(const ServerEntry& former);
  // Called when the policy of a server has changed, which decides who sees it. `former` is the policy that it
  // had.
  void apply_policy(const ServerEntry& entry, ServerPolicyPtr former);
  // Discards all views; each is built again when it is next requested. Called when a session has ended, or
  // when a server's upstreams have been replaced.
  void drop_views() noexcept;

  // Returns the event that is set when the first attempt to fetch lists has ended for every server, or when a
  // client has received an incomplete list. From then on clients are notified of list changes.
  Event& initial_fetch_done() noexcept { return initial_fetch_done_; }

  // Called when clients may have requested lists. Before that, initial_fetch_done() may be reset.
  void set_served() noexcept { served_ = true; }
  bool served() const noexcept { return served_; }

  // Returns empty lists for a server. They are freed in slices when no catalogue refers to them any more.
  std::shared_ptr<ServerLists> make_lists() { return reclaimer_->make_lists(); }

 private:
  // Discards the current catalogue and all views. The next call of current() builds a new catalogue, once for
  // all lists that were published meanwhile.
  void invalidate() noexcept;
  // Returns whether some session or user has unshared lists that differ from the shared ones.
  bool any_unshared_lists_differ();
  void notify_clients(const ServerLists& before, const ServerLists& now,
                      const ListChangeNotifier::Affected& affected);
  // Identifies a view: the endpoint, the clients that see the same servers and, if unshared upstreams have
  // other entries, the session and the user.
  struct ViewKey {
    std::uint64_t scope = 0;
    std::string visibility_class;
    std::string session;
    std::string user;

    auto operator<=>(const ViewKey&) const = default;
  };
  std::shared_ptr<const Catalogue> build_view(const EndpointScope& scope, std::string_view session,
                                              const Principal& principal);
  // Returns the lists of a server as the endpoint offers them.
  std::shared_ptr<const ServerLists> lists_at(const EndpointScope& scope,
                                              const std::shared_ptr<const ServerLists>& lists);
  std::shared_ptr<const ServerLists> derive_lists(const EndpointScope& scope, const ServerLists& lists);
  void store_view(ViewKey key, const std::shared_ptr<const Catalogue>& view);

  Loop& loop_;
  std::shared_ptr<const ServerTable> servers_;
  Log log_;
  std::shared_ptr<ListChangeNotifier> list_notifier_;
  std::shared_ptr<ListReclaimer> reclaimer_ = std::make_shared<ListReclaimer>(loop_);
  std::shared_ptr<const Catalogue> current_ = std::make_shared<const Catalogue>();  // null: invalidated
  std::shared_ptr<const EndpointScope> all_servers_ = std::make_shared<const EndpointScope>();
  // Each view is built when a client first requests it.
  std::map<ViewKey, std::shared_ptr<const Catalogue>> views_;
  std::size_t cached_view_servers_ = 0;  // servers of all views_ together
  // The result of any_unshared_lists_differ(); nullopt: it must be computed again.
  std::optional<bool> any_unshared_lists_differ_ = false;
  Event initial_fetch_done_;
  bool served_ = false;  // see set_served()
};

}  // namespace fairlead::gateway
