// ServerTable: the configured servers by name. Every change of the table is applied to the pool, too. Lookups
// never insert. Private to the layer.
#pragma once

#include <cstdint>
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

  // Returns null if there is no such server.
  EntryPtr find(std::string_view name) const;
  // The same without a new reference. The pointer is valid until version() changes.
  const EntryPtr* find_entry(std::string_view name) const;
  // Changes whenever a server is added, replaced or removed.
  std::uint64_t version() const noexcept { return version_; }
  // Returns the server that the public name of a tool or prompt begins with; null if there is none.
  EntryPtr owner_of_public_name(std::string_view public_name) const;
  // Returns the entries in the order of names.
  std::vector<EntryPtr> all() const;
  const std::map<std::string, EntryPtr, std::less<>>& by_name() const noexcept { return entries_; }

  // Returns whether all servers are visible to every client.
  bool all_visible() const noexcept { return restricted_count_ == 0; }
  // Returns a key that is equal for clients that see the same servers.
  std::string visibility_class(const Principal& client) const;
  // Sets the policy of a server, and its rules; nothing else changes.
  void set_policy(ServerEntry& entry, ServerPolicyPtr policy, ListRulesPtr rules);

  // Fails with `validation` if the server's name is invalid, or if its sharing requires authentication and
  // clients are not authenticated.
  Result<void> check_spec(const pool::ServerSpec& spec) const;
  // Each of the following functions returns the new current entry and retires the former one. Each fails with
  // `validation` if check_spec() rejects the spec, or if the name is already in use (add) or unknown. add()
  // fails with `resource_exhausted` if there are max_servers servers. On failure nothing has changed.
  Result<EntryPtr> add(pool::ServerSpec spec);
  // The new entry starts with the lists of the former entry. Clients see these until the lists of the server
  // have been fetched again.
  Result<EntryPtr> update(pool::ServerSpec spec);
  Result<EntryPtr> enable(std::string_view name);
  Result<EntryPtr> disable(std::string_view name);
  // Returns the retired entry.
  Result<EntryPtr> remove(std::string_view name);

 private:
  // Fails with `validation` if the name is unknown.
  Result<EntryPtr> find_or_fail(std::string_view name) const;
  // The policy and the rules of the former entry stay in force.
  EntryPtr replace(const EntryPtr& former, EntryPtr next);
  // Adds `step` (1 or -1) to the counts of restricted servers if the policy restricts its server.
  void count(const ServerPolicy& policy, int step);

  std::shared_ptr<pool::Pool> pool_;
  bool authenticated_;
  std::map<std::string, EntryPtr, std::less<>> entries_;
  std::uint64_t version_ = 0;
  int restricted_count_ = 0;  // servers that are not visible to every client
  // The number of servers that only their owner sees, by owner; never 0.
  std::map<std::string, int, std::less<>> owner_counts_;
};

}  // namespace fairlead::gateway
