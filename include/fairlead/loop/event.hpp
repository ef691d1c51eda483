// Event: coroutines of one loop wait until it is set. set() wakes all waiters; the event stays set until
// reset(). Copies are the same event. Loop thread only.
#pragma once

#include <coroutine>
#include <list>
#include <memory>
#include <utility>

#include "fairlead/loop/timer.hpp"

namespace fairlead {

class Event {
 public:
  class Wait;
  class UntimedWait;

  // More waiters than this are resumed in several turns of the loop.
  static constexpr std::size_t kMaxWakesPerTurn = 100;

  Event() noexcept = default;
  Event(const Event& other) : state_(other.shared_state()) {}
  Event& operator=(const Event& other) {
    state_ = other.shared_state();
    return *this;
  }
  ~Event() = default;

  bool is_set() const noexcept { return state_ ? state_->set : set_; }
  // Resumes the waiters one after the other: up to kMaxWakesPerTurn of them before it returns, the others in
  // callbacks that are posted to the loop. A resumed waiter may destroy the event.
  void set();
  void reset() noexcept { (state_ ? state_->set : set_) = false; }
  // co_await: returns true when the event is set, false if `timeout` expires first.
  Wait wait(Loop& loop, Clock::duration timeout);
  // co_await: returns when the event is set.
  UntimedWait wait(Loop& loop);

 private:
  struct State {
    explicit State(bool is_set) noexcept : set(is_set) {}

    bool set;
    std::list<Wait*> waiting;
    std::list<Wait*> waking;  // waiters for which the event was set and that are not resumed yet
  };
  static void wake_some(const std::shared_ptr<State>& state);
  const std::shared_ptr<State>& shared_state() const {
    if (!state_) state_ = std::make_shared<State>(set_);
    return state_;
  }

  bool set_ = false;                      // used while state_ is null
  mutable std::shared_ptr<State> state_;  // null: the event was never copied or waited for
};

class Event::Wait {
 public:
  Wait(std::shared_ptr<State> state, Loop& loop, Clock::duration timeout)
      : state_(std::move(state)), loop_(loop), timer_(loop), timeout_(timeout) {}
  Wait(const Wait&) = delete;
  ~Wait() { unlink(); }

  bool await_ready() noexcept { return woken_ = state_->set; }
  void await_suspend(std::coroutine_handle<> handle) {
    handle_ = handle;
    position_ = state_->waiting.insert(state_->waiting.end(), this);
    linked_ = true;
    if (timeout_ != Clock::duration::max()) timer_.arm_after(timeout_, [this] { resume(); });
  }
  bool await_resume() const noexcept { return woken_; }

 private:
  friend class Event;
  void unlink() noexcept {
    if (std::exchange(linked_, false)) (woken_ ? state_->waking : state_->waiting).erase(position_);
  }
  void resume() {
    unlink();
    timer_.cancel();
    handle_.resume();
  }

  std::shared_ptr<State> state_;
  Loop& loop_;
  Timer timer_;
  Clock::duration timeout_;
  std::coroutine_handle<> handle_;
  std::list<Wait*>::iterator position_;
  bool linked_ = false;
  bool woken_ = false;
};

class Event::UntimedWait : public Wait {
 public:
  using Wait::Wait;
  void await_resume() const noexcept {}
};

inline void Event::set() {
  const std::shared_ptr<State> state = state_;
  if (!state) {
    set_ = true;
    return;
  }
  state->set = true;
  for (Wait* const wait : state->waiting) wait->woken_ = true;
  state->waking.splice(state->waking.end(), state->waiting);
  wake_some(state);
}

inline void Event::wake_some(const std::shared_ptr<State>& state) {
  for (std::size_t woken = 0; woken < kMaxWakesPerTurn && !state->waking.empty(); ++woken)
    state->waking.front()->resume();
  if (state->waking.empty()) return;
  state->waking.front()->loop_.post([state] { wake_some(state); });
}

inline Event::Wait Event::wait(Loop& loop, Clock::duration timeout) {
  return Wait(shared_state(), loop, timeout);
}

inline Event::UntimedWait Event::wait(Loop& loop) {
  return UntimedWait(shared_state(), loop, Clock::duration::max());
}

}  // namespace fairlead
