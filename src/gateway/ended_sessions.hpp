// EndedSessions: releases what servers and lists keep for sessions that have ended. Sessions that end
// together are released in one walk over the servers, in slices. Private to the layer.
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

  // `session` is released after the current turn.
  void add(std::string_view session);

 private:
  using Sessions = std::set<std::string, std::less<>>;

  void release_soon();
  static Task<void> release_all(std::shared_ptr<EndedSessions> self);
  // Removes the lists that servers have for `sessions`, which the caller keeps.
  Task<void> remove_lists(const Sessions& sessions);

  Loop& loop_;
  std::shared_ptr<pool::Pool> pool_;
  std::shared_ptr<const ServerTable> servers_;
  std::shared_ptr<CatalogueStore> catalogue_;
  Sessions added_;          // not yet in a walk
  bool releasing_ = false;  // release_all() is posted or runs
};

}  // namespace fairlead::gateway
