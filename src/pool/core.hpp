// What all upstreams of a pool share: the loop, the options, the places for processes and calls. Private to
// the layer.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fairlead/loop/event.hpp"
#include "fairlead/pool/pool.hpp"
#include "pool/gate.hpp"
#include "pool/referenced_variables.hpp"
#include "pool/tool_crashes.hpp"
#include "pool/waiting_calls.hpp"

namespace fairlead::pool {

class ManagedUpstream;

class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(Loop& on, PoolOptions given);

  Loop& loop;
  PoolOptions options;
  std::shared_ptr<Gate> processes;
  std::shared_ptr<Gate> starts;
  std::shared_ptr<Gate> calls;
  WaitingCalls waiting_calls;
  std::function<void(ManagedUpstream&)>
      settled;  // it does not run and nobody waits for it: perhaps to be forgotten

  ReferencedVariables referenced_variables;

  const Log& log() const noexcept { return options.client.connect.log; }
  // Without the secrets that servers are connected with now.
  Error redacted(Error error) const;

  // ---- processes ----
  // A place among the processes: the room there is, or that of the idle one whose last call is longest ago.
  // Those that a call waits for come first in line. Kind resource_exhausted.
  Task<Result<Gate::Pass>> enter_process(Clock::duration patience, StartPriority priority);
  // Evicts as many idle ones as there are starts waiting; called when one may have become idle.
  void make_room();

  // ---- upstreams ----
  void enroll(ManagedUpstream& upstream) { upstreams_.insert(&upstream); }
  void dismiss(ManagedUpstream& upstream) { upstreams_.erase(&upstream); }

  // ---- connections, from before their start until they are gone ----
  class Live {
   public:
    explicit Live(std::shared_ptr<Core> core) : core_(std::move(core)) { ++core_->live_; }
    Live(Live&&) noexcept = default;
    ~Live() {
      if (core_) core_->died();
    }

   private:
    std::shared_ptr<Core> core_;
  };
  Task<bool> all_gone(Clock::duration patience);

 private:
  ManagedUpstream* next_to_evict(Clock::time_point now, Clock::time_point& ripe_at) const;
  void died();

  std::set<ManagedUpstream*> upstreams_;
  Timer room_timer_;
  std::size_t live_ = 0;
  Event quiet_;
};

// A connection's place: among the processes, where it is one, and among what lives.
struct Place {
  Place(Gate::Pass pass, std::shared_ptr<Core> core) : process(std::move(pass)), live(std::move(core)) {}

  Gate::Pass process;
  Core::Live live;
};

// What the upstreams of one server share. A server that is updated gets a new one.
struct ServerState {
  ServerState(Loop& loop, ServerSpec given, std::chrono::milliseconds era_max_age)
      : spec(std::move(given)),
        calls(std::make_shared<Gate>(loop, spec.max_calls)),
        eras(std::make_shared<mcp::EraCache>(era_max_age)) {}

  const ServerSpec spec;
  std::shared_ptr<Gate> calls;
  Sharing sharing = Sharing::shared;  // as it is practised
  std::string evidence;
  bool warned_of_missing_session = false;
  std::shared_ptr<mcp::EraCache> eras;  // of this server alone: whether its next start must probe it
  ToolCrashes tool_crashes{spec.restart};
  // The server, or what is asked of it, shows that it keeps something of one session for itself.
  std::function<void(const std::string& evidence)> keeps_state;
};

Error with_retry(Error error, Clock::duration after);
// Kind resource_exhausted, with its code and remedy.
Error limit_reached(std::string message, Clock::duration retry_after);

}  // namespace fairlead::pool
