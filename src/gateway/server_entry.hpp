// ServerEntry: one configured server as the gateway knows it, whether it runs or not. Shared-owned: a
// coroutine that waits keeps the entry it began with. Every change of a server's configuration makes a new
// entry; the former one is retired, and what is still found out for it is dropped. Private to the layer.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/loop/event.hpp"
#include "fairlead/loop/timer.hpp"
#include "fairlead/pool/pool.hpp"
#include "gateway/offers.hpp"
#include "pool/gate.hpp"

namespace fairlead::gateway {

// The lists of one upstream, and the requests that keep them current.
struct ListCache {
  std::shared_ptr<const Listed> listed;  // null: it has not listed yet
  // The connection that was asked to announce changes (2026-07-28).
  std::weak_ptr<pool::UpstreamConnection> listening;
  Clock::time_point next{};               // not asked before this
  bool asking = false;                    // a coroutine asks for the lists
  bool again = false;                     // the lists have changed since that coroutine began
  std::optional<pool::Lease> lease;       // held while asking; resetting it lets the upstream stop
  std::weak_ptr<pool::Upstream> changed;  // the upstream that announced a change
};

// How the listing of a server fares.
struct ListingState {
  bool attempted = false;        // an attempt to list has ended, with whatever outcome
  std::string problem;           // why the lists are missing or incomplete; empty: they are complete
  std::optional<Error> failure;  // why the lists are missing
  std::array<std::optional<Error>, kKinds.size()> errors;  // why the list of a kind is missing
  std::optional<Timer> retry;                              // armed while there is a problem
  std::chrono::milliseconds pause{};
  std::vector<std::shared_ptr<pool::Waiter>> waiters;  // called when the next attempt has ended
};

struct ServerEntry {
  explicit ServerEntry(pool::ServerSpec given) : spec(std::move(given)), enabled(spec.enabled) {
    listing.attempted = !enabled;
  }

  const std::string& name() const noexcept { return spec.name; }
  bool per_user() const noexcept { return spec.sharing == pool::Sharing::per_user; }
  // The lists of the upstream that this session or user has for itself; null if there is none, or it has not
  // listed.
  std::shared_ptr<const Listed> own_lists(std::string_view session, std::string_view user) const;
  // Whether the server may have something of this kind that is not in its lists: the last attempt to list it
  // has failed, or there was none.
  bool unlisted(Kind kind) const;
  // Releases the leases and stops the timer that asking for lists holds, and calls those who wait for it.
  void stop_listing();
  void call_waiters();

  const pool::ServerSpec spec;
  bool enabled;                                 // by its spec, enable_server() and disable_server()
  bool retired = false;                         // removed from the table, or replaced by another entry
  mcp::Revision revision = mcp::kNewestLegacy;  // of the connection that listed last
  ListingState listing;
  ListCache shared;  // what every client sees that has no upstream of its own
  std::map<std::string, std::shared_ptr<ListCache>, std::less<>> own;  // by session or user
};

}  // namespace fairlead::gateway
