// ListFetcher: fetches the lists of servers and publishes them in the catalogue. The lists of a server are
// fetched when the server is added, when it notifies of a change, and when it has been restarted. If fetching
// fails, it is retried later; until then a new server has no entries in the catalogue. Private to the layer.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/log.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/pool/pool.hpp"
#include "gateway/catalogue_store.hpp"
#include "gateway/list_builder.hpp"
#include "gateway/server_table.hpp"

namespace fairlead::gateway {

// Returns the MCP method that requests a list of this kind, such as "tools/list".
std::string_view list_method(ListKind kind) noexcept;

class ListFetcher : public std::enable_shared_from_this<ListFetcher> {
 public:
  using EntryPtr = std::shared_ptr<ServerEntry>;

  ListFetcher(Loop& loop, std::shared_ptr<pool::Pool> pool, std::shared_ptr<const ServerTable> servers,
              std::shared_ptr<CatalogueStore> catalogue, Log log,
              std::shared_ptr<ListBuilder> builder = nullptr)
      : loop_(loop),
        pool_(std::move(pool)),
        servers_(std::move(servers)),
        catalogue_(std::move(catalogue)),
        log_(std::move(log)),
        builder_(builder ? std::move(builder) : std::make_shared<ListBuilder>(loop, catalogue_)) {}

  // Sets the delay before the first retry. The delay doubles with each further retry, up to kMaxRetryDelay.
  void set_first_retry_delay(std::chrono::milliseconds delay) { first_retry_delay_ = delay; }
  // See Config::min_list_interval.
  void set_min_list_interval(std::chrono::milliseconds interval) { min_list_interval_ = interval; }
  // Starts to fetch the lists that are shared by all clients. They are fetched from `changed`, the upstream
  // that has notified of a change; if `changed` is null or does not run, from any upstream that serves all
  // clients.
  void refresh_shared(const EntryPtr& entry, const std::shared_ptr<pool::Upstream>& changed);
  // Starts to fetch the lists of an upstream that serves only one session or user. Does nothing if the
  // upstream is not ready.
  void refresh_unshared(const EntryPtr& entry, const std::shared_ptr<pool::Upstream>& upstream);
  // Sets the catalogue's initial_fetch_done() event if an attempt to fetch lists has ended for every server,
  // and wakes the tasks in wait_for_any_attempt(). Must be called when a server is removed or disabled.
  void update_initial_fetch_done();
  // Waits until an attempt to fetch the lists of any server ends, a server is removed or disabled, the
  // fetcher is stopped, stop is requested, or the timeout elapses.
  Task<void> wait_for_any_attempt(std::stop_token stop, Clock::duration timeout = Clock::duration::max());
  // Waits until an attempt to fetch the lists of `entry` ends, or `entry` is retired. Fails with `timeout` or
  // `cancelled`, and with `closed` if the gateway is shutting down.
  Task<Result<void>> wait_for_attempt(EntryPtr entry, std::stop_token stop);
  // Called for a request of `client` whose target the server of `entry` may have without having listed it.
  // Starts the server as a call does, with the server's timeouts, and waits until its lists have been
  // fetched. Fails with the reason why the list of `kind` could not be fetched. Succeeds if `entry` is
  // retired meanwhile.
  Task<Result<void>> fetch_for_request(EntryPtr entry, ListKind kind, PrincipalPtr client,
                                       std::stop_token stop);
  // Stops fetching lists: releases all leases and timers, and makes refresh_shared() and refresh_unshared()
  // do nothing.
  void stop();

 private:
  // The result of fetching the lists of one upstream.
  struct ListOutcome {
    ListOutcome() {}  // NOLINT: not an aggregate, see StreamConnectOptions

    std::shared_ptr<const ServerLists> lists;
    std::string problem;  // why some lists could not be fetched; empty if all were fetched
    // Why the list of each kind was not fetched; nullopt if it was.
    std::array<std::optional<Error>, kListKinds.size()> errors_by_kind;
  };

  // Fetches the shared lists, and again if they have changed meanwhile.
  static Task<void> fetch_shared(std::shared_ptr<ListFetcher> self, EntryPtr entry);
  // Fetches and publishes the shared lists once. Returns false if fetching failed, or if the gateway is
  // stopping or `entry` is retired.
  Task<bool> fetch_shared_once(EntryPtr entry);
  static Task<void> fetch_unshared(std::shared_ptr<ListFetcher> self, EntryPtr entry,
                                   std::shared_ptr<pool::Upstream> upstream,
                                   std::shared_ptr<ListCache> cache);
  // Waits until min_list_interval_ has passed since the lists were last fetched, so that a server that
  // notifies of changes too often causes no more load. Then marks the lists as fetched now: sets
  // `earliest_fetch` and resets `outdated`. Returns false if the gateway is stopping. REQUIRES: `cache`
  // outlives the task.
  Task<bool> wait_for_rate_limit(ListCache& cache);
  // Fetches all lists of the upstream of `lease`, which belongs to `entry`. Fails if the connection ends
  // meanwhile. A list that cannot be fetched for another reason is recorded in ListOutcome::errors_by_kind.
  // REQUIRES: `cache` outlives the task.
  Task<Result<ListOutcome>> fetch_lists(pool::Lease lease, EntryPtr entry, ListCache& cache);
  // Subscribes to the list changes of a modern server, unless this connection is already subscribed.
  Task<void> subscribe_to_changes(std::shared_ptr<pool::UpstreamConnection> connection, ListCache& cache);
  // Stores the outcome of an attempt in `entry.fetch_state`. Logs its problem if it has changed.
  void record_outcome(ServerEntry& entry, const Result<ListOutcome>& outcome);
  // Records that an attempt to fetch the lists of `entry` has ended, successful or not, and wakes its
  // waiters.
  void end_attempt(ServerEntry& entry);
  void wake_waiters();  // wakes waiters_
  // Returns whether an attempt to fetch lists has ended for every server.
  bool all_attempted();
  // Arms the timer of `entry` for the next attempt.
  void retry_later(const EntryPtr& entry);

  Loop& loop_;
  std::shared_ptr<pool::Pool> pool_;
  std::shared_ptr<const ServerTable> servers_;
  std::shared_ptr<CatalogueStore> catalogue_;
  Log log_;
  std::shared_ptr<ListBuilder> builder_;
  std::chrono::milliseconds first_retry_delay_{1'000};
  std::chrono::milliseconds min_list_interval_{100};
  // The tasks in wait_for_any_attempt().
  std::vector<std::shared_ptr<pool::Waiter>> waiters_;
  std::string search_start_;  // the server at which all_attempted() begins its next search
  bool stopping_ = false;
};

}  // namespace fairlead::gateway
