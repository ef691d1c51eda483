#include "fairlead/pool/supervisor.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace fairlead::pool {

namespace {

constexpr std::size_t kStateCount = 8;
constexpr std::size_t kEventCount = 12;

template <class Enum>
constexpr std::size_t index(Enum value) noexcept {
  return static_cast<std::size_t>(value);
}

}  // namespace

std::string_view to_string(UpstreamState state) noexcept {
  static constexpr std::array<std::string_view, kStateCount> kNames = {
      "idle", "starting", "handshaking", "ready", "draining", "backing_off", "crash_loop", "stopped"};
  return kNames[index(state)];
}

std::string_view to_string(Supervisor::Event event) noexcept {
  static constexpr std::array<std::string_view, kEventCount> kNames = {
      "start_requested", "connected", "handshake_done", "start_failed", "connection_lost", "exited",
      "idle_stop",       "retire",    "drained",        "closed",       "retry_due",       "enabled"};
  return kNames[index(event)];
}

// The entries of the table.
enum class Supervisor::Operation : std::uint8_t {
  ignore,
  start,            // start a new generation
  start_if_due,     // start a new generation if retry_at() has been reached
  wait,             // the request waits; see Action::wait
  refuse,           // the request is refused
  handshake,        // enter handshaking
  serve,            // enter ready
  fail,             // count a failure; there is no connection to close
  close_failed,     // count a failure: close the connection, then enter backing_off or crash_loop
  close_idle,       // no failure: close the connection, then enter idle
  close_if_unused,  // the same as close_idle, but ignored while there are active calls
  retire,           // wait for the active calls, close, then enter stopped
  abort,            // abort the start in progress, then enter stopped
  close,            // close the connection unless that has been requested already
  finish_draining,  // the connection is closed: enter the state of after_draining_
  stop_afterwards,  // enter stopped when draining ends
  idle_afterwards,  // enter idle, not stopped, when draining ends
  stop,             // enter stopped
  become_idle,      // enter idle
};

struct Supervisor::EventContext {
  Event event;
  Time now;
  std::size_t active_call_count;
  std::string_view reason;
};

struct Supervisor::Table {
  using Row = std::array<Operation, kEventCount>;
  using enum Operation;
  // clang-format off
  static constexpr std::array<Row, kStateCount> kOperations = {{
    //                 start_requested  connected  handshake_done  start_failed     connection_lost  exited      idle_stop        retire           drained  closed           retry_due    enabled
    /* idle        */ {start,           ignore,    ignore,         ignore,          ignore,          ignore,     ignore,          stop,            ignore,  ignore,          ignore,      ignore},
    /* starting    */ {wait,            handshake, serve,          fail,            ignore,          ignore,     ignore,          abort,           ignore,  ignore,          ignore,      ignore},
    /* handshaking */ {wait,            ignore,    serve,          fail,            ignore,          ignore,     ignore,          abort,           ignore,  ignore,          ignore,      ignore},
    /* ready       */ {ignore,          ignore,    ignore,         ignore,          close_failed,    close_idle, close_if_unused, retire,          ignore,  ignore,          ignore,      ignore},
    /* draining    */ {wait,            ignore,    ignore,         finish_draining, close,           close,      ignore,          stop_afterwards, close,   finish_draining, ignore,      idle_afterwards},
    /* backing_off */ {start_if_due,    ignore,    ignore,         ignore,          ignore,          ignore,     ignore,          stop,            ignore,  ignore,          become_idle, ignore},
    /* crash_loop  */ {start_if_due,    ignore,    ignore,         ignore,          ignore,          ignore,     ignore,          stop,            ignore,  ignore,          ignore,      ignore},
    /* stopped     */ {refuse,          ignore,    ignore,         ignore,          ignore,          ignore,     ignore,          ignore,          ignore,  ignore,          ignore,      become_idle},
  }};
  // clang-format on
};

Supervisor::Operation Supervisor::operation_for(Event event) const noexcept {
  return Table::kOperations[index(state_)][index(event)];
}

Supervisor::Action Supervisor::handle_event(Event event, Time now, std::size_t active_call_count,
                                            std::string_view reason) {
  return perform(operation_for(event), EventContext{event, now, active_call_count, reason});
}

Supervisor::Action Supervisor::action_if_start_requested(Time now) const {
  return action_for_start_request(operation_for(Event::start_requested), now);
}

Supervisor::Action Supervisor::action_for_start_request(Operation operation, Time now) const noexcept {
  switch (operation) {
    case Operation::start: return Action::start;
    case Operation::start_if_due:
      if (now >= retry_at_) return Action::start;
      return state_ == UpstreamState::crash_loop ? Action::refuse : Action::wait;
    case Operation::wait:
      return after_draining_ == AfterDraining::stop && state_ == UpstreamState::draining ? Action::refuse
                                                                                         : Action::wait;
    case Operation::refuse: return Action::refuse;
    default: return Action::none;
  }
}

Supervisor::Action Supervisor::perform(Operation operation, const EventContext& context) {
  switch (operation) {
    case Operation::ignore: return Action::none;
    case Operation::start:
    case Operation::start_if_due:
    case Operation::wait:
    case Operation::refuse: {
      const Action action = action_for_start_request(operation, context.now);
      return action == Action::start ? start(context) : action;
    }
    case Operation::handshake: enter(UpstreamState::handshaking, context); return Action::none;
    case Operation::serve: enter(UpstreamState::ready, context); return Action::none;
    case Operation::fail: fail(context); return Action::none;
    case Operation::close_failed: return drain(AfterDraining::failure, true, context);
    case Operation::close_idle: return drain(AfterDraining::idle, true, context);
    case Operation::close_if_unused:
      return context.active_call_count == 0 ? drain(AfterDraining::idle, true, context) : Action::none;
    case Operation::retire: return drain(AfterDraining::stop, context.active_call_count == 0, context);
    case Operation::abort: return drain(AfterDraining::stop, true, context);
    case Operation::close: return close_once();
    case Operation::finish_draining: finish_draining(context); return Action::none;
    case Operation::stop_afterwards: after_draining_ = AfterDraining::stop; return Action::none;
    case Operation::idle_afterwards:
      if (after_draining_ == AfterDraining::stop) after_draining_ = AfterDraining::idle;
      return Action::none;
    case Operation::stop: enter(UpstreamState::stopped, context); return Action::none;
    case Operation::become_idle: enter(UpstreamState::idle, context); return Action::none;
  }
  return Action::none;
}

Supervisor::Action Supervisor::start(const EventContext& context) {
  ++generation_;
  enter(UpstreamState::starting, context);
  return Action::start;
}

Supervisor::Action Supervisor::drain(AfterDraining after, bool close_now, const EventContext& context) {
  if (state_ == UpstreamState::ready && context.now - since_ >= policy_.forgive_after)
    consecutive_failures_ = 0;
  after_draining_ = after;
  close_requested_ = false;
  enter(UpstreamState::draining, context);
  return close_now ? close_once() : Action::none;
}

Supervisor::Action Supervisor::close_once() {
  return std::exchange(close_requested_, true) ? Action::none : Action::close;
}

void Supervisor::finish_draining(const EventContext& context) {
  switch (after_draining_) {
    case AfterDraining::idle: return enter(UpstreamState::idle, context);
    case AfterDraining::failure: return fail(context);
    case AfterDraining::stop: return enter(UpstreamState::stopped, context);
  }
}

void Supervisor::fail(const EventContext& context) {
  ++consecutive_failures_;
  const bool looping = consecutive_failures_ >= policy_.crash_loop_after;
  retry_at_ = context.now + (looping ? policy_.crash_loop_pause : next_delay());
  enter(looping ? UpstreamState::crash_loop : UpstreamState::backing_off, context);
}

std::chrono::milliseconds Supervisor::next_delay() {
  if (consecutive_failures_ <= 1) return std::chrono::milliseconds(0);
  const double grown =
      static_cast<double>(policy_.initial.count()) * std::pow(policy_.factor, consecutive_failures_ - 2);
  const double capped = std::min(grown, static_cast<double>(policy_.max.count()));
  std::uniform_real_distribution<double> share(1 - policy_.jitter, 1 + policy_.jitter);
  return std::chrono::milliseconds(static_cast<std::chrono::milliseconds::rep>(capped * share(random_)));
}

void Supervisor::enter(UpstreamState to, const EventContext& context) {
  const Transition transition{state_,      to,         context.event, std::string(context.reason),
                              generation_, context.now};
  state_ = to;
  since_ = context.now;
  history_.push_back(transition);
  if (history_.size() > kMaxHistory) history_.pop_front();
  if (observer_) observer_(transition);
}

}  // namespace fairlead::pool
