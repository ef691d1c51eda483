// Supervisor: the life of one upstream as a table, state × event → move. It has no clock and starts nothing:
// it is told what happened and when, and says what to do. Every change of state is told to whoever watches.
//
//   switch (supervisor.on(Supervisor::Event::wanted, Clock::now())) { case Action::start: … }
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <string>
#include <string_view>

namespace fairlead::pool {

enum class State : std::uint8_t {
  idle,         // nothing runs, and it starts when it is wanted
  starting,     // the process is being started, the socket connected
  handshaking,  // connected; the protocol's greeting is under way
  ready,        // it has answered
  draining,     // takes no new calls: those under way finish, or its process is being stopped
  backing_off,  // failed; starts again after a while
  crash_loop,   // failed too often in a row; refuses calls for a longer while
  stopped,      // removed or disabled
};
std::string_view to_string(State state) noexcept;

// How often and how fast to try again.
struct RestartPolicy {
  // The first failure in a row costs no delay. The second one costs `initial`, each further one `factor`
  // times more, up to `max`; all of them give or take a share of `jitter`.
  std::chrono::milliseconds initial{200};
  double factor = 2;
  std::chrono::milliseconds max{30'000};
  double jitter = 0.2;
  std::chrono::milliseconds forgive_after{
      60'000};                    // having been ready for this long, earlier failures are forgotten
  unsigned crash_loop_after = 5;  // failures in a row, with no call answered in between
  std::chrono::milliseconds crash_loop_pause{60'000};  // then nothing is tried for this long
  // A tool whose calls end the process this often in a row is refused for tool_crash_pause, while other tools
  // are served; 0: never.
  unsigned tool_crash_after = 3;
  std::chrono::milliseconds tool_crash_pause{60'000};

  bool operator==(const RestartPolicy&) const = default;
};

class Supervisor {
 public:
  using Time = std::chrono::steady_clock::time_point;

  enum class Event : std::uint8_t {
    wanted,     // somebody needs it
    connected,  // the process runs, the socket is connected
    answered,   // the handshake is done
    failed,     // the start came to nothing, and nothing of it is left
    lost,       // the connection broke, or had to be given up
    left,       // the server ended by itself, its work done
    rest,       // it may go until it is wanted again: idle for long, or its place is needed
    retire,     // removed, disabled, replaced: it may not come back
    drained,    // the last call under way has ended
    gone,       // the connection is closed and its process reaped
    due,        // the time of retry_at() has come
    restored,   // enabled again
  };

  enum class Action : std::uint8_t {
    none,
    start,   // start it, as generation()
    wait,    // not now: at `gone` or `due` ask again
    refuse,  // not before retry_at(), or not at all when stopped
    close,   // close the connection, and say `gone` when it is
  };

  // One change of state.
  struct Transition {
    State from;
    State to;
    Event event;
    std::string reason;  // in words, where there are any
    std::uint64_t generation;
    Time at;
  };

  explicit Supervisor(RestartPolicy policy = {}, std::uint32_t seed = 1) : policy_(policy), random_(seed) {}

  // `calls` is how many are under way now. An event that means nothing in this state changes nothing.
  Action on(Event event, Time now, std::size_t calls = 0, std::string_view reason = {});
  // A call was answered: earlier failures no longer count as failures in a row.
  void served() noexcept {
    if (state_ == State::ready) failures_ = 0;
  }
  // What `wanted` would be answered with, without asking for it.
  Action outlook(Time now) const;

  State state() const noexcept { return state_; }
  // Counts the starts. What is reported of an earlier generation concerns nobody any more.
  std::uint64_t generation() const noexcept { return generation_; }
  unsigned failures() const noexcept { return failures_; }  // in a row
  Time retry_at() const noexcept { return retry_at_; }      // backing_off, crash_loop
  Time since() const noexcept { return since_; }            // of the last transition

  // Called at each transition, from within on(). It must not call on() itself.
  void watch(std::function<void(const Transition&)> watcher) { watcher_ = std::move(watcher); }
  const std::deque<Transition>& history() const noexcept {
    return history_;
  }  // the last kHistory, oldest first
  static constexpr std::size_t kHistory = 16;

 private:
  enum class Move : std::uint8_t;
  enum class After : std::uint8_t { idle, failure, stop };  // where `gone` leads to
  struct Happening;
  struct Table;

  Move move_for(Event event) const noexcept;
  Action perform(Move move, const Happening& what);
  Action when_wanted(Move move, Time now) const noexcept;
  Action begin(const Happening& what);
  Action drain(After after, bool close_now, const Happening& what);
  Action close_once();
  void settle(const Happening& what);
  void fail(const Happening& what);
  void enter(State to, const Happening& what);
  std::chrono::milliseconds delay();

  RestartPolicy policy_;
  std::minstd_rand random_;
  State state_ = State::idle;
  After after_ = After::idle;  // draining
  bool closing_ = false;       // draining: the connection has been told to close
  std::uint64_t generation_ = 0;
  unsigned failures_ = 0;
  Time retry_at_{};
  Time since_{};
  std::function<void(const Transition&)> watcher_;
  std::deque<Transition> history_;
};

std::string_view to_string(Supervisor::Event event) noexcept;
using Transition = Supervisor::Transition;

}  // namespace fairlead::pool
