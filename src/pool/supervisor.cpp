#include "fairlead/pool/supervisor.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace fairlead::pool {

namespace {

constexpr std::size_t kStates = 8;
constexpr std::size_t kEvents = 12;

template <class Enum>
constexpr std::size_t index(Enum value) noexcept {
  return static_cast<std::size_t>(value);
}

}  // namespace

std::string_view to_string(State state) noexcept {
  static constexpr std::array<std::string_view, kStates> kNames = {
      "idle", "starting", "handshaking", "ready", "draining", "backing_off", "crash_loop", "stopped"};
  return kNames[index(state)];
}

std::string_view to_string(Supervisor::Event event) noexcept {
  static constexpr std::array<std::string_view, kEvents> kNames = {
      "wanted", "connected", "answered", "failed", "lost", "left",
      "rest",   "retire",    "drained",  "gone",   "due",  "restored"};
  return kNames[index(event)];
}

// What a cell of the table stands for.
enum class Supervisor::Move : std::uint8_t {
  stay,
  begin,      // a new generation starts
  begin_due,  // the same, if its time has come
  hold,       // whoever wants it waits
  refuse,     // whoever wants it is told no
  greet,      // on to the handshake
  serve,      // on to ready
  fall,       // a failure that left nothing behind
  break_off,  // a failure: close what there is
  let_go,     // no failure: close what there is, and be idle
  take_rest,  // the same, unless there are calls
  retire,     // let the calls finish, then close for good
  abort,      // stop what is being started, for good
  finish,     // close now, unless that is so already
  settle,     // all is gone: on to what comes after
  forget,     // draining is for good now
  come_back,  // draining is not for good any more
  end,        // stopped
  reopen,     // idle again
};

struct Supervisor::Happening {
  Event event;
  Time now;
  std::size_t calls;
  std::string_view reason;
};

struct Supervisor::Table {
  using Row = std::array<Move, kEvents>;
  static constexpr Move stay = Move::stay;
  // clang-format off
  static constexpr std::array<Row, kStates> kMoves = {{
    //               wanted           connected    answered     failed        lost             left          rest             retire        drained       gone          due           restored
    /* idle        */ {Move::begin,     stay,        stay,        stay,         stay,            stay,         stay,            Move::end,    stay,         stay,         stay,         stay},
    /* starting    */ {Move::hold,      Move::greet, Move::serve, Move::fall,   stay,            stay,         stay,            Move::abort,  stay,         stay,         stay,         stay},
    /* handshaking */ {Move::hold,      stay,        Move::serve, Move::fall,   stay,            stay,         stay,            Move::abort,  stay,         stay,         stay,         stay},
    /* ready       */ {stay,            stay,        stay,        stay,         Move::break_off, Move::let_go, Move::take_rest, Move::retire, stay,         stay,         stay,         stay},
    /* draining    */ {Move::hold,      stay,        stay,        Move::settle, Move::finish,    Move::finish, stay,            Move::forget, Move::finish, Move::settle, stay,         Move::come_back},
    /* backing_off */ {Move::begin_due, stay,        stay,        stay,         stay,            stay,         stay,            Move::end,    stay,         stay,         Move::reopen, stay},
    /* crash_loop  */ {Move::begin_due, stay,        stay,        stay,         stay,            stay,         stay,            Move::end,    stay,         stay,         stay,         stay},
    /* stopped     */ {Move::refuse,    stay,        stay,        stay,         stay,            stay,         stay,            stay,         stay,         stay,         stay,         Move::reopen},
  }};
  // clang-format on
};

Supervisor::Move Supervisor::move_for(Event event) const noexcept {
  return Table::kMoves[index(state_)][index(event)];
}

Supervisor::Action Supervisor::on(Event event, Time now, std::size_t calls, std::string_view reason) {
  return perform(move_for(event), Happening{event, now, calls, reason});
}

Supervisor::Action Supervisor::outlook(Time now) const {
  return when_wanted(move_for(Event::wanted), now);
}

Supervisor::Action Supervisor::when_wanted(Move move, Time now) const noexcept {
  switch (move) {
    case Move::begin: return Action::start;
    case Move::begin_due:
      if (now >= retry_at_) return Action::start;
      return state_ == State::crash_loop ? Action::refuse : Action::wait;
    case Move::hold:
      return after_ == After::stop && state_ == State::draining ? Action::refuse : Action::wait;
    case Move::refuse: return Action::refuse;
    default: return Action::none;
  }
}

Supervisor::Action Supervisor::perform(Move move, const Happening& what) {
  switch (move) {
    case Move::stay: return Action::none;
    case Move::begin:
    case Move::begin_due:
    case Move::hold:
    case Move::refuse: {
      const Action answer = when_wanted(move, what.now);
      return answer == Action::start ? begin(what) : answer;
    }
    case Move::greet: enter(State::handshaking, what); return Action::none;
    case Move::serve: enter(State::ready, what); return Action::none;
    case Move::fall: fail(what); return Action::none;
    case Move::break_off: return drain(After::failure, true, what);
    case Move::let_go: return drain(After::idle, true, what);
    case Move::take_rest: return what.calls == 0 ? drain(After::idle, true, what) : Action::none;
    case Move::retire: return drain(After::stop, what.calls == 0, what);
    case Move::abort: return drain(After::stop, true, what);
    case Move::finish: return close_once();
    case Move::settle: settle(what); return Action::none;
    case Move::forget: after_ = After::stop; return Action::none;
    case Move::come_back:
      if (after_ == After::stop) after_ = After::idle;
      return Action::none;
    case Move::end: enter(State::stopped, what); return Action::none;
    case Move::reopen: enter(State::idle, what); return Action::none;
  }
  return Action::none;
}

Supervisor::Action Supervisor::begin(const Happening& what) {
  ++generation_;
  enter(State::starting, what);
  return Action::start;
}

Supervisor::Action Supervisor::drain(After after, bool close_now, const Happening& what) {
  if (state_ == State::ready && what.now - since_ >= policy_.forgive_after) failures_ = 0;
  after_ = after;
  closing_ = false;
  enter(State::draining, what);
  return close_now ? close_once() : Action::none;
}

Supervisor::Action Supervisor::close_once() {
  return std::exchange(closing_, true) ? Action::none : Action::close;
}

void Supervisor::settle(const Happening& what) {
  switch (after_) {
    case After::idle: return enter(State::idle, what);
    case After::failure: return fail(what);
    case After::stop: return enter(State::stopped, what);
  }
}

void Supervisor::fail(const Happening& what) {
  ++failures_;
  const bool looping = failures_ >= policy_.crash_loop_after;
  retry_at_ = what.now + (looping ? policy_.crash_loop_pause : delay());
  enter(looping ? State::crash_loop : State::backing_off, what);
}

std::chrono::milliseconds Supervisor::delay() {
  if (failures_ <= 1) return std::chrono::milliseconds(0);
  const double grown = static_cast<double>(policy_.initial.count()) * std::pow(policy_.factor, failures_ - 2);
  const double capped = std::min(grown, static_cast<double>(policy_.max.count()));
  std::uniform_real_distribution<double> share(1 - policy_.jitter, 1 + policy_.jitter);
  return std::chrono::milliseconds(static_cast<std::chrono::milliseconds::rep>(capped * share(random_)));
}

void Supervisor::enter(State to, const Happening& what) {
  const Transition transition{state_, to, what.event, std::string(what.reason), generation_, what.now};
  state_ = to;
  since_ = what.now;
  history_.push_back(transition);
  if (history_.size() > kHistory) history_.pop_front();
  if (watcher_) watcher_(transition);
}

}  // namespace fairlead::pool
