// CatalogueStore: owns the current catalogue. A session or user that has an unshared upstream whose lists
// differ from the shared ones has a catalogue of its own, a view. Notifies clients of list changes. Private
// to the layer.
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
#include "gateway/list_change_notifier.hpp"
#include "gateway/list_reclaimer.hpp"
#include "gateway/server_table.hpp"

namespace fairlead::gateway {

// Returns whether two versions of a server's lists have the same entries in the same order, and the same
// lists are missing for the same reasons.
bool same_lists(const ServerLists& a, const ServerLists& b);

class CatalogueStore {
 public:
  CatalogueStore(Loop& loop, std::shared_ptr<const ServerTable> servers, mcp::Server front, Log log);

  // Returns the catalogue for clients that have no unshared upstream. Builds it if lists have changed since
  // the last call.
  const std::shared_ptr<const Catalogue>& current();
  // Returns the catalogue for this session and principal: current(), unless they have an unshared upstream
  // whose lists have other entries.
  std::shared_ptr<const Catalogue> view(std::string_view session, const Principal& principal);

  // Store newly fetched lists of `entry`, and notify the clients that see them if the entries have changed.
  // publish_shared() is for the lists that all clients share. publish_unshared() is for those of the session
  // or user `key`; it stores them in `cache`, and does nothing if `cache` is no longer the cache of `key`.
  void publish_shared(ServerEntry& entry, std::shared_ptr<const ServerLists> lists);
  void publish_unshared(const ServerEntry& entry, const std::string& key, ListCache& cache,
                        std::shared_ptr<const ServerLists> lists);
  // Called when a server has been removed from the server table or disabled. From now on the catalogues omit
  // its lists; clients are notified. `before` are the lists that the server had; null if it had none.
  void withdraw(const std::shared_ptr<const ServerLists>& before);
  // Discards all views; each is built again when it is next requested. Called when a session has ended, or
  // when a server's upstreams have been replaced.
  void drop_views() noexcept;

  // Returns the event that is set when the first attempt to fetch lists has ended for every server, or when a
  // client has received an incomplete list. From then on clients are notified of list changes.
  Event& initial_fetch_done() noexcept { return initial_fetch_done_; }

  // Returns empty lists for a server. They are freed in slices when no catalogue refers to them any more.
  std::shared_ptr<ServerLists> make_lists() { return reclaimer_->make_lists(); }

 private:
  // Discards the current catalogue and all views. The next call of current() builds a new catalogue, once for
  // all lists that were published meanwhile.
  void invalidate() noexcept;
  // Returns whether some session or user has unshared lists that differ from the shared ones.
  bool any_unshared_lists_differ();
  void notify_clients(const ServerLists& before, const ServerLists& now,
                      const mcp::ClientPredicate& affected);

  Loop& loop_;
  std::shared_ptr<const ServerTable> servers_;
  Log log_;
  std::shared_ptr<ListChangeNotifier> list_notifier_;
  std::shared_ptr<ListReclaimer> reclaimer_ = std::make_shared<ListReclaimer>(loop_);
  std::shared_ptr<const Catalogue> current_ = std::make_shared<const Catalogue>();  // null: invalidated
  // The views by session and user. Each is built when a client first requests it.
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const Catalogue>> views_;
  // The result of any_unshared_lists_differ(); nullopt: it must be computed again.
  std::optional<bool> any_unshared_lists_differ_ = false;
  Event initial_fetch_done_;
};

}  // namespace fairlead::gateway
