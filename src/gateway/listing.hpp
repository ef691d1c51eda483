// Listing: asks servers for their lists when they are configured, and again whenever one announces a change
// or has been started anew, and publishes them in the catalogue. A server that cannot list leaves its part of
// the lists empty and is asked again later. Private to the layer.
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
#include "gateway/server_table.hpp"

namespace fairlead::gateway {

std::string_view list_method(Kind kind) noexcept;

class Listing : public std::enable_shared_from_this<Listing> {
 public:
  using EntryPtr = std::shared_ptr<ServerEntry>;

  Listing(Loop& loop, std::shared_ptr<pool::Pool> pool, std::shared_ptr<const ServerTable> servers,
          std::shared_ptr<CatalogueStore> catalogue, Log log)
      : loop_(loop),
        pool_(std::move(pool)),
        servers_(std::move(servers)),
        catalogue_(std::move(catalogue)),
        log_(std::move(log)) {}

  // Until a server that could not list is asked again; then twice that, up to kMaxRetryDelay.
  void set_retry_delay(std::chrono::milliseconds delay) { retry_delay_ = delay; }
  // `changed` is the upstream that has changed; null: whichever serves.
  void refresh(const EntryPtr& entry, const std::shared_ptr<pool::Upstream>& changed);
  // For an upstream of one session or user, which is not started for it.
  void refresh_own(const EntryPtr& entry, const std::shared_ptr<pool::Upstream>& upstream);
  // Sets the catalogue's complete() if no server is left that has not tried to list. To be called when a
  // server is removed or disabled.
  void check_complete();
  // Waits until an attempt of some server to list has ended, or `stop`.
  Task<void> next_attempt(std::stop_token stop);
  // For a request of `client` that `entry` may be able to serve: starts the server as a call does, by its own
  // clocks, and waits until it has listed. Fails with the reason why its list of `kind` is missing. When
  // `entry` has been retired meanwhile it returns without an error.
  Task<Result<void>> list_for_request(EntryPtr entry, Kind kind, PrincipalPtr client, std::stop_token stop);
  // Releases what asking holds, and asks no more.
  void stop();

 private:
  // The outcome of asking one upstream.
  struct ListOutcome {
    ListOutcome() {}  // NOLINT: not an aggregate, see ConnectOptions

    std::shared_ptr<const Listed> listed;
    std::string problem;                                     // why it is incomplete; empty: it is complete
    std::array<std::optional<Error>, kKinds.size()> errors;  // of the lists that are missing
  };

  static Task<void> list_shared(std::shared_ptr<Listing> self, EntryPtr entry);
  // False: do not ask again.
  Task<bool> list_once(EntryPtr entry);
  static Task<void> list_own(std::shared_ptr<Listing> self, EntryPtr entry,
                             std::shared_ptr<pool::Upstream> upstream, std::shared_ptr<ListCache> cache);
  // However often a server announces changes, it is asked at most once in kMinListInterval. False: stopping.
  // `cache` is kept alive by the caller.
  Task<bool> wait_for_rate_limit(ListCache& cache);
  // `cache` is kept alive by the caller.
  Task<Result<ListOutcome>> ask(pool::Lease lease, ListCache& cache);
  Task<void> ask_for_changes(std::shared_ptr<pool::UpstreamConnection> connection, ListCache& cache);
  // Makes offers of what `server` has listed, in slices that let the loop serve others in between.
  Task<void> make_offers(std::string server, std::shared_ptr<Listed> listed);
  void note_outcome(ServerEntry& entry, const Result<ListOutcome>& outcome);
  // An attempt of `entry` has ended, with whatever outcome.
  void end_attempt(ServerEntry& entry);
  // Until an attempt of `entry` has ended, or it is retired. Kind timeout, cancelled or closed otherwise.
  Task<Result<void>> wait_for_attempt(EntryPtr entry, std::stop_token stop);
  void call_waiters();
  bool all_attempted();
  void retry_later(const EntryPtr& entry);

  Loop& loop_;
  std::shared_ptr<pool::Pool> pool_;
  std::shared_ptr<const ServerTable> servers_;
  std::shared_ptr<CatalogueStore> catalogue_;
  Log log_;
  std::chrono::milliseconds retry_delay_{1'000};
  std::vector<std::shared_ptr<pool::Waiter>> waiters_;  // called when an attempt has ended
  std::string awaited_;  // a server that had not tried to list when all_attempted() was called last
  bool stopping_ = false;
};

}  // namespace fairlead::gateway
