// Event: coroutines of one loop wait for it until it is set. Setting it wakes all of them; it stays set.
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

  // More waiters than these are resumed in several turns of the loop.
  static constexpr std::size_t kWokenPerTurn = 100;

  bool is_set() const noexcept { return state_->set; }
  // Resumes those who wait, one after the other: kWokenPerTurn of them before it returns, the others after
  // what else is due on the loop. What they do may destroy the event.
  void set();
  void reset() noexcept { state_->set = false; }
  // co_await: true when it was set, false when `timeout` passed first. Clock::duration::max() is for ever.
  Wait wait(Loop& loop, Clock::duration timeout);

 private:
  struct State {
    bool set = false;
    std::list<Wait*> waiting;
    std::list<Wait*> waking;  // it was set for these; they are to be resumed
  };
  static void wake(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_ = std::make_shared<State>();
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
    place_ = state_->waiting.insert(state_->waiting.end(), this);
    linked_ = true;
    if (timeout_ != Clock::duration::max()) timer_.arm_after(timeout_, [this] { resume(); });
  }
  bool await_resume() const noexcept { return woken_; }

 private:
  friend class Event;
  void unlink() noexcept {
    if (std::exchange(linked_, false)) (woken_ ? state_->waking : state_->waiting).erase(place_);
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
  std::list<Wait*>::iterator place_;
  bool linked_ = false;
  bool woken_ = false;
};

inline void Event::set() {
  const std::shared_ptr<State> state = state_;
  state->set = true;
  for (Wait* const wait : state->waiting) wait->woken_ = true;
  state->waking.splice(state->waking.end(), state->waiting);
  wake(state);
}

inline void Event::wake(const std::shared_ptr<State>& state) {
  for (std::size_t woken = 0; woken < kWokenPerTurn && !state->waking.empty(); ++woken)
    state->waking.front()->resume();
  if (state->waking.empty()) return;
  state->waking.front()->loop_.post([state] { wake(state); });
}

inline Event::Wait Event::wait(Loop& loop, Clock::duration timeout) {
  return Wait(state_, loop, timeout);
}

}  // namespace fairlead
