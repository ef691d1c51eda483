// CatalogueStore: the catalogue that clients see now, and the views of those sessions and users that have
// upstreams of their own which list something else. Has clients told of changes. Private to the layer.
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
#include "gateway/list_announcer.hpp"
#include "gateway/part_reaper.hpp"
#include "gateway/server_table.hpp"

namespace fairlead::gateway {

// Whether two lists of a server have the same entries in the same order, and the same kinds are missing.
bool same_entries(const Listed& one, const Listed& other);

class CatalogueStore {
 public:
  CatalogueStore(Loop& loop, std::shared_ptr<const ServerTable> servers, mcp::Server front, Log log);

  // The catalogue of clients that have no upstream of their own.
  const std::shared_ptr<const Catalogue>& current();
  std::shared_ptr<const Catalogue> view(std::string_view session, const Principal& principal);

  // `entry` has listed: for all, or for the session or user `key` by the upstream whose lists `cache` has.
  void publish(ServerEntry& entry, std::shared_ptr<const Listed> listed);
  void publish_own(const ServerEntry& entry, const std::string& key, ListCache& cache,
                   std::shared_ptr<const Listed> listed);
  // A server is not offered any more; `before` are the lists it had, or null.
  void withdraw(const std::shared_ptr<const Listed>& before);
  // A session has ended, or a server's upstreams have been replaced.
  void drop_views() noexcept;

  // Set when every server has tried to list once, or a client has been shown an incomplete list: from then on
  // clients are told of changes.
  Event& complete() noexcept { return complete_; }

  // For the lists of a server. Freed in slices when no catalogue has it any more.
  std::shared_ptr<Listed> make_part() { return reaper_->make_part(); }

 private:
  // current() makes the catalogue anew when it is called next. Many servers may list before that.
  void outdate() noexcept;
  bool views_differ();
  void announce(const Listed& before, const Listed& now, const mcp::Concerns& concerns);

  Loop& loop_;
  std::shared_ptr<const ServerTable> servers_;
  Log log_;
  std::shared_ptr<ListAnnouncer> announcer_;
  std::shared_ptr<PartReaper> reaper_ = std::make_shared<PartReaper>(loop_);
  std::shared_ptr<const Catalogue> current_ = std::make_shared<const Catalogue>();  // null: outdated
  // Made when a client looks. By session and user.
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const Catalogue>> views_;
  // Some upstream of one session or user lists something else; nullopt: not known.
  std::optional<bool> views_differ_ = false;
  Event complete_;
};

}  // namespace fairlead::gateway
