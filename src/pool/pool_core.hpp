// PoolCore: what all upstreams of a pool share: the loop, the options, and the semaphores for processes,
// starts and calls. Private to the layer.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fairlead/loop/event.hpp"
#include "fairlead/pool/pool.hpp"
#include "pool/referenced_variables.hpp"
#include "pool/semaphore.hpp"
#include "pool/tool_crashes.hpp"
#include "pool/waiting_calls.hpp"

namespace fairlead::pool {

class ManagedUpstream;

class PoolCore : public std::enable_shared_from_this<PoolCore> {
 public:
  PoolCore(Loop& pool_loop, PoolOptions pool_options);

  Loop& loop;
  PoolOptions options;
  std::shared_ptr<Semaphore> process_permits;  // max_stdio_processes
  std::shared_ptr<Semaphore> start_permits;    // max_concurrent_starts
  std::shared_ptr<Semaphore> call_permits;     // max_calls
  WaitingCalls waiting_calls;
  // Called when an upstream has become inactive(). Set by the registry, which may erase the upstream.
  std::function<void(ManagedUpstream&)> on_inactive;

  ReferencedVariables referenced_variables;

  const Log& log() const noexcept { return options.client.connect.log; }
  // Returns `error` without the secrets that servers are connected with now.
  Error redacted(Error error) const;

  // ---- processes ----
  // Acquires a permit of max_stdio_processes. If none is available, evicts the least recently used idle
  // process. Starts that a call waits for have priority. Fails with `resource_exhausted` over max_start_queue
  // or after `timeout`.
  Task<Result<Semaphore::Permit>> acquire_process_permit(Clock::duration timeout, StartPriority priority);
  // Evicts up to one idle process per waiting start. To be called when a process may have become idle.
  void evict_idle();

  // ---- upstreams ----
  void add_upstream(ManagedUpstream& upstream) { upstreams_.insert(&upstream); }
  void remove_upstream(ManagedUpstream& upstream) { upstreams_.erase(&upstream); }

  // ---- connections ----
  // Counts one connection for its lifetime: from before the start of the connection until it is closed.
  class LiveConnection {
   public:
    explicit LiveConnection(std::shared_ptr<PoolCore> core) : core_(std::move(core)) {
      ++core_->live_connection_count_;
    }
    LiveConnection(LiveConnection&&) noexcept = default;
    ~LiveConnection() {
      if (core_) core_->on_connection_closed();
    }

   private:
    std::shared_ptr<PoolCore> core_;
  };
  // Waits until no connection is left. Returns false if it times out.
  Task<bool> wait_until_all_closed(Clock::duration timeout);

 private:
  // Returns the least recently used upstream that can be evicted now, preferring shared ones: an upstream of
  // one session or user may have state. Returns null if there is none. Lowers `evictable_at` to the earliest
  // time at which another idle upstream can be evicted.
  ManagedUpstream* next_to_evict(Clock::time_point now, Clock::time_point& evictable_at) const;
  void on_connection_closed();

  std::set<ManagedUpstream*> upstreams_;
  Timer eviction_timer_;
  std::size_t live_connection_count_ = 0;
  Event all_closed_;
};

// The resources of a connection from before its start until it is closed: a process permit, if the server is
// a child process, and one count of PoolCore::LiveConnection.
struct ConnectionReservation {
  ConnectionReservation(Semaphore::Permit permit, std::shared_ptr<PoolCore> core)
      : process_permit(std::move(permit)), live_connection(std::move(core)) {}

  Semaphore::Permit process_permit;
  PoolCore::LiveConnection live_connection;
};

// What the upstreams of one server share. An updated server gets a new context.
struct ServerContext {
  ServerContext(Loop& loop, ServerSpec server_spec, std::chrono::milliseconds era_max_age)
      : spec(std::move(server_spec)),
        call_permits(std::make_shared<Semaphore>(loop, spec.max_calls)),
        era_cache(std::make_shared<mcp::EraCache>(era_max_age)) {}

  const ServerSpec spec;
  std::shared_ptr<Semaphore> call_permits;  // max_calls of the server
  Sharing sharing = Sharing::shared;        // the effective mode, never `automatic`
  std::string sharing_evidence;  // why the server is no longer shared; empty if it still is, or never was
  bool warned_of_missing_session = false;
  // Whether the server is legacy or modern, so that the next start need not probe it.
  std::shared_ptr<mcp::EraCache> era_cache;
  ToolCrashes tool_crashes{spec.restart};
  // Called when a request from or to the server shows that the server keeps state per session. Null unless
  // the configured mode is `automatic`.
  std::function<void(const std::string& evidence)> on_stateful;
};

// Returns `error` with detail().retry_after set.
Error with_retry_after(Error error, Clock::duration retry_after);
// Returns a `resource_exhausted` error with its code and remedy.
Error limit_error(std::string message, Clock::duration retry_after);

}  // namespace fairlead::pool
