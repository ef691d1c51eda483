// EndedSessions: the queue of ended sessions whose upstreams and lists are still to be released. One pass
// over the servers, in slices, releases all sessions that have ended in the same turn. Private to the layer.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "fairlead/pool/pool.hpp"
#include "gateway/catalogue_store.hpp"
#include "gateway/server_table.hpp"

namespace fairlead::gateway {

class EndedSessions : public std::enable_shared_from_this<EndedSessions> {
 public:
  EndedSessions(Loop& loop, std::shared_ptr<pool::Pool> pool, std::shared_ptr<const ServerTable> servers,
                std::shared_ptr<CatalogueStore> catalogue)
      : loop_(loop), pool_(std::move(pool)), servers_(std::move(servers)), catalogue_(std::move(catalogue)) {}

  // Schedules the release of `session`. The release begins after the current turn.
  void add(std::string_view session);

 private:
  using Sessions = std::set<std::string, std::less<>>;

  void schedule_release();
  static Task<void> release_all(std::shared_ptr<EndedSessions> self);
  // Removes the lists of `sessions` from all servers. REQUIRES: `sessions` outlives the task.
  Task<void> remove_lists(const Sessions& sessions);

  Loop& loop_;
  std::shared_ptr<pool::Pool> pool_;
  std::shared_ptr<const ServerTable> servers_;
  std::shared_ptr<CatalogueStore> catalogue_;
  Sessions pending_;        // to be released by the next pass
  bool releasing_ = false;  // release_all() is posted or running
};

}  // namespace fairlead::gateway
