// ServerEntry: the gateway's state of one configured server, running or not. Every change of a server's
// configuration creates a new entry and retires the former one. A coroutine that uses an entry shares its
// ownership; when the coroutine resumes and the entry is retired, it drops its results. Private to the layer.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/gateway/gateway.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/loop/timer.hpp"
#include "fairlead/pool/pool.hpp"
#include "gateway/server_lists.hpp"
#include "pool/semaphore.hpp"

namespace fairlead::gateway {

// The lists of one upstream, and the state of the coroutine that fetches them.
struct ListCache {
  std::shared_ptr<const ServerLists> lists;  // null: not fetched yet
  // The connection on which the gateway has subscribed to list changes; modern servers only.
  std::weak_ptr<pool::UpstreamConnection> subscribed_connection;
  Clock::time_point earliest_fetch{};  // the lists are not fetched before this time
  bool fetching = false;               // the coroutine runs
  bool outdated = false;               // the lists must be fetched, or fetched again
  EntryNames quarantined;              // of an unshared upstream, in addition to those of the server
  std::optional<pool::Lease> lease;    // keeps the upstream running during a fetch
  std::weak_ptr<pool::Upstream> changed_upstream;  // the upstream that has notified of a change
};

// The state of the attempts to fetch a server's lists.
struct ListFetchState {
  bool attempted = false;  // an attempt has ended, successful or not; or the server is disabled
  std::string problem;     // why the last attempt did not fetch all lists; empty otherwise
  // Why the last attempt failed as a whole, so that none of its lists is used; nullopt otherwise.
  std::optional<Error> attempt_error;
  // Why the last attempt did not fetch the list of each kind; nullopt if it did.
  std::array<std::optional<Error>, kListKinds.size()> errors_by_kind;
  std::optional<Timer> retry_timer;         // starts the next attempt; armed while there is a problem
  std::chrono::milliseconds retry_delay{};  // before the next attempt; 0: there is no problem
  std::vector<std::shared_ptr<pool::Waiter>> waiters;  // woken when the next attempt ends
};

using ServerPolicyPtr = std::shared_ptr<const ServerPolicy>;

struct ServerEntry {
  explicit ServerEntry(pool::ServerSpec server_spec) : spec(std::move(server_spec)), enabled(spec.enabled) {
    fetch_state.attempted = !enabled;
  }

  const std::string& name() const noexcept { return spec.name; }
  // Returns the policy of a server of a configuration file.
  static const ServerPolicyPtr& default_policy();
  // Returns whether the unshared upstreams serve one user each, instead of one session each.
  bool per_user() const noexcept { return spec.sharing == pool::Sharing::per_user; }
  // Returns the lists of the unshared upstream, which serves only this session or user. Returns null if there
  // is no such upstream, or if its lists have not been fetched.
  std::shared_ptr<const ServerLists> unshared_lists(std::string_view session, std::string_view user) const;
  // Returns whether the server may have entries of this kind that the gateway does not know, because the last
  // attempt to fetch this list failed, or no attempt has ended.
  bool may_have_unlisted_entries(ListKind kind) const;
  // Releases the leases and the retry timer, and wakes the waiters. Called when the entry is retired or the
  // gateway stops.
  void stop_fetching();
  void wake_waiters();

  const pool::ServerSpec spec;
  bool enabled;                               // set by the spec, enable_server() and disable_server()
  bool retired = false;                       // removed from the server table, or replaced by a newer entry
  ServerPolicyPtr policy = default_policy();  // never null
  ListRulesPtr rules;                         // that result from the policy and from quarantined entries
  // The shared lists were stored earlier; the server has not listed itself yet.
  bool lists_are_stored = false;
  mcp::Revision revision = mcp::kNewestLegacyRevision;  // of the connection that last fetched the lists
  ListFetchState fetch_state;
  ListCache shared;  // the lists for clients without an unshared upstream
  // The lists of unshared upstreams, by session or user.
  std::map<std::string, std::shared_ptr<ListCache>, std::less<>> unshared;
  std::set<std::string, std::less<>> fetching_users;  // see OwnListFetcher
};

}  // namespace fairlead::gateway
