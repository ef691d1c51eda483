// Supervisor: the state machine of one upstream, a table state × event → operation. It has no clock and does
// no I/O: the caller reports each event with its time and performs the returned action. An observer is
// notified of every state transition.
//
// Example:
//   pool::Supervisor supervisor;
//   auto action = supervisor.handle_event(pool::Supervisor::Event::start_requested, Clock::now());
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <string>
#include <string_view>

namespace fairlead::pool {

enum class UpstreamState : std::uint8_t {
  idle,         // not running; starts on request
  starting,     // the process is being started or the socket connected
  handshaking,  // connected; the MCP handshake is in progress
  ready,        // the handshake is complete
  draining,     // rejects new calls while active calls finish or the process is being stopped
  backing_off,  // failed; can be started again at retry_at()
  crash_loop,   // failed too often in a row; rejects calls until retry_at()
  stopped,      // retired (Event::retire): not started again before Event::enabled
};
std::string_view to_string(UpstreamState state) noexcept;

// Backoff and crash-loop policy.
struct RestartPolicy {
  // The first failure in a row is retried without delay, the second after `initial`. Each further delay is
  // `factor` times longer, up to `max`. Each delay is varied at random by ± the fraction `jitter`.
  std::chrono::milliseconds initial{200};
  double factor = 2;
  std::chrono::milliseconds max{30'000};
  double jitter = 0.2;
  // After the upstream has been ready for this long, the count of failures in a row is reset.
  std::chrono::milliseconds forgive_after{60'000};
  unsigned crash_loop_after = 5;                       // failures in a row, with no call answered in between
  std::chrono::milliseconds crash_loop_pause{60'000};  // no start is attempted for this long
  // A tool whose calls end the process this many times in a row is refused for tool_crash_pause, while other
  // tools are served; 0: never.
  unsigned tool_crash_after = 3;
  std::chrono::milliseconds tool_crash_pause{60'000};

  bool operator==(const RestartPolicy&) const = default;
};

class Supervisor {
 public:
  using Time = std::chrono::steady_clock::time_point;

  enum class Event : std::uint8_t {
    start_requested,  // a call or a background task needs the upstream
    connected,        // the process runs or the socket is connected
    handshake_done,   // the server has completed the handshake
    start_failed,     // the start failed, and its process and connection are closed
    connection_lost,  // the connection broke or had to be abandoned
    exited,           // the server exited by itself and did not fail
    idle_stop,        // the upstream is idle or evicted: it is stopped until the next start request
    retire,           // its server was removed, disabled or replaced: not started again before `enabled`
    drained,          // the last active call has ended
    closed,           // the connection is closed and its process reaped
    retry_due,        // retry_at() has been reached
    enabled,          // enabled again after `retire`
  };

  enum class Action : std::uint8_t {
    none,
    start,   // start the upstream; generation() is the number of this start
    wait,    // report start_requested again after the event `closed` or `retry_due`
    refuse,  // reject the request: no start before retry_at() or, if stopped, before Event::enabled
    close,   // close the connection, then report `closed`
  };

  struct Transition {
    UpstreamState from;
    UpstreamState to;
    Event event;
    std::string reason;  // for humans; may be empty
    std::uint64_t generation;
    Time time;
  };

  explicit Supervisor(RestartPolicy policy = {}, std::uint32_t seed = 1) : policy_(policy), random_(seed) {}

  // Handles `event` and returns what the caller must do. While there are active calls, `idle_stop` is
  // ignored, and `retire` waits for `drained`. An event that has no meaning in the current state is ignored.
  Action handle_event(Event event, Time now, std::size_t active_call_count = 0, std::string_view reason = {});
  // Resets the count of failures in a row. To be called when the server has answered a call.
  void on_call_answered() noexcept {
    if (state_ == UpstreamState::ready) consecutive_failures_ = 0;
  }
  // Returns what handle_event(Event::start_requested) would return, without changing the state.
  Action action_if_start_requested(Time now) const;

  UpstreamState state() const noexcept { return state_; }
  // The number of starts so far. The caller must not report events of an earlier generation, such as the end
  // of its connection.
  std::uint64_t generation() const noexcept { return generation_; }
  unsigned consecutive_failures() const noexcept { return consecutive_failures_; }
  Time retry_at() const noexcept { return retry_at_; }  // valid in backing_off and crash_loop
  Time since() const noexcept { return since_; }        // time of the last transition

  // Sets the observer, which handle_event() calls at each transition. The observer must not call
  // handle_event().
  void set_observer(std::function<void(const Transition&)> observer) { observer_ = std::move(observer); }
  // The last kMaxHistory transitions, oldest first.
  const std::deque<Transition>& history() const noexcept { return history_; }
  static constexpr std::size_t kMaxHistory = 16;

 private:
  enum class Operation : std::uint8_t;
  enum class AfterDraining : std::uint8_t { idle, failure, stop };  // the state after Event::closed
  struct EventContext;
  struct Table;

  Operation operation_for(Event event) const noexcept;
  Action perform(Operation operation, const EventContext& context);
  Action action_for_start_request(Operation operation, Time now) const noexcept;
  Action start(const EventContext& context);
  Action drain(AfterDraining after, bool close_now, const EventContext& context);
  Action close_once();
  void finish_draining(const EventContext& context);
  void fail(const EventContext& context);
  void enter(UpstreamState to, const EventContext& context);
  std::chrono::milliseconds next_delay();

  RestartPolicy policy_;
  std::minstd_rand random_;
  UpstreamState state_ = UpstreamState::idle;
  AfterDraining after_draining_ = AfterDraining::idle;  // valid in draining
  bool close_requested_ = false;                        // valid in draining: Action::close has been returned
  std::uint64_t generation_ = 0;
  unsigned consecutive_failures_ = 0;
  Time retry_at_{};
  Time since_{};
  std::function<void(const Transition&)> observer_;
  std::deque<Transition> history_;
};

std::string_view to_string(Supervisor::Event event) noexcept;
using Transition = Supervisor::Transition;

}  // namespace fairlead::pool
