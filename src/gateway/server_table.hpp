// ServerTable: the configured servers by name, and their counterparts in the pool. Looking up never inserts.
// Private to the layer.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/server_entry.hpp"

namespace fairlead::gateway {

class ServerTable {
 public:
  using EntryPtr = std::shared_ptr<ServerEntry>;

  // `authenticated`: see sharing_problem().
  explicit ServerTable(std::shared_ptr<pool::Pool> pool, bool authenticated = false)
      : pool_(std::move(pool)), authenticated_(authenticated) {}

  // Null if there is no such server.
  EntryPtr find(std::string_view name) const;
  // The server whose tool or prompt could be offered as `offered`: the one its prefix names. Null if there is
  // none.
  EntryPtr owner_of(std::string_view offered) const;
  // By name.
  std::vector<EntryPtr> all() const;
  const std::map<std::string, EntryPtr, std::less<>>& by_name() const noexcept { return entries_; }

  // Kind validation for a name that cannot be used, or a sharing that needs authentication.
  Result<void> check(const pool::ServerSpec& spec) const;
  // Each returns the entry that has become current, and retires the one that was. Kind validation for a spec
  // that check() refuses, and a name that is taken or unknown; kind resource_exhausted for a server over
  // max_servers; then nothing has changed.
  Result<EntryPtr> add(pool::ServerSpec spec);
  // The new entry begins with the lists of the former one, which are offered until the server has listed
  // anew.
  Result<EntryPtr> update(pool::ServerSpec spec);
  Result<EntryPtr> enable(std::string_view name);
  Result<EntryPtr> disable(std::string_view name);
  // Returns the retired entry.
  Result<EntryPtr> remove(std::string_view name);

 private:
  Result<EntryPtr> require(std::string_view name) const;
  EntryPtr replace(const EntryPtr& former, EntryPtr next);

  std::shared_ptr<pool::Pool> pool_;
  bool authenticated_;
  std::map<std::string, EntryPtr, std::less<>> entries_;
};

}  // namespace fairlead::gateway
