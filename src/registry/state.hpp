// State: the rows of the registry in memory, and the changes of them. Read on the loop thread only; rows are
// immutable and may be kept. Private to the library.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "fairlead/base/string_map.hpp"
#include "fairlead/registry/model.hpp"

namespace fairlead::registry {

class Configuration;

using ServerPtr = std::shared_ptr<const Server>;
using EndpointPtr = std::shared_ptr<const Endpoint>;
using UserPtr = std::shared_ptr<const User>;
using GroupPtr = std::shared_ptr<const Group>;
using TokenPtr = std::shared_ptr<const Token>;
using StoredListsPtr = std::shared_ptr<const StoredLists>;
using DriftPtr = std::shared_ptr<const Drift>;
using SecretPtr = std::shared_ptr<const Secret>;
using SecretDataKeyPtr = std::shared_ptr<const SecretDataKey>;
using ConfigurationPtr = std::shared_ptr<const Configuration>;

// Rows of one kind by id (UUIDv7: in the order of creation) and by name. Names of tokens need not be unique:
// by_name() then has one of the tokens.
template <class T>
class Table {
 public:
  using Ptr = std::shared_ptr<const T>;
  using Map = std::map<std::string, Ptr, std::less<>>;

  // Return null if there is no such row.
  Ptr find(std::string_view id) const { return find_in(by_id_, id); }
  Ptr find_by_name(std::string_view name) const { return find_in(by_name_, name); }
  const Map& by_id() const noexcept { return by_id_; }
  const Map& by_name() const noexcept { return by_name_; }
  std::size_t size() const noexcept { return by_id_.size(); }

  // Adds the row, or replaces the row with the same id. Returns the row that it replaces.
  Ptr put(Ptr row) {
    Ptr& stored = by_id_[row->id];
    Ptr before = std::exchange(stored, row);
    if (before && before->name != row->name) forget_name(*before);
    by_name_[row->name] = std::move(row);
    return before;
  }
  // Returns the removed row, or null.
  Ptr remove(std::string_view id) {
    const auto found = by_id_.find(id);
    if (found == by_id_.end()) return nullptr;
    Ptr removed = std::move(found->second);
    by_id_.erase(found);
    forget_name(*removed);
    return removed;
  }

 private:
  static Ptr find_in(const Map& map, std::string_view key) {
    const auto found = map.find(key);
    return found == map.end() ? nullptr : found->second;
  }
  // Another row may have taken the name meanwhile.
  void forget_name(const T& row) {
    const auto found = by_name_.find(row.name);
    if (found != by_name_.end() && found->second->id == row.id) by_name_.erase(found);
  }

  Map by_id_;
  Map by_name_;
};

struct State {
  std::int64_t revision = 0;  // of the database; grows with every change
  Table<Server> servers;
  Table<Endpoint> endpoints;
  Table<User> users;
  Table<Group> groups;
  Table<Token> tokens;
  StringMap<TokenPtr> tokens_by_sha256;
  StringMap<StoredListsPtr> lists;                                   // by id of the server
  std::map<std::string, DriftPtr, std::less<>> drift;                // by id; open and resolved
  StringMap<std::map<std::string, DriftPtr>> drift_by_server;        // by id of the server, then by id
  Table<Secret> secrets;                                             // names are not unique
  std::map<std::string, SecretPtr, std::less<>> secrets_by_scope;    // by secret_scope_key()
  std::map<std::string, SecretDataKeyPtr, std::less<>> secret_keys;  // by id: in the order of creation
  ConfigurationPtr configuration;                                    // never null; an immutable snapshot
};

// One row that has changed. `before` is null for a new row, `after` for a removed one.
template <class T>
struct RowChange {
  std::shared_ptr<const T> before;
  std::shared_ptr<const T> after;
};
using Change = std::variant<RowChange<Server>, RowChange<Endpoint>, RowChange<User>, RowChange<Group>,
                            RowChange<Token>, RowChange<Drift>, RowChange<Secret>, RowChange<Configuration>>;

// The lists of a server have changed, by this gateway or another one.
struct ListsChange {
  std::string server_id;
};

}  // namespace fairlead::registry
