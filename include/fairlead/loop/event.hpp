// Event: coroutines of one loop wait for it until it is set. Setting it wakes all of them; it stays set.
#pragma once

#include <coroutine>
#include <list>
#include <memory>

#include "fairlead/loop/timer.hpp"

namespace fairlead {

class Event {
 public:
  class Wait;

  bool is_set() const noexcept { return state_->set; }
  // Resumes those who wait, one after the other, before it returns. What they do may destroy the event.
  void set();
  void reset() noexcept { state_->set = false; }
  // co_await: true when it was set, false when `timeout` passed first. Clock::duration::max() is for ever.
  Wait wait(Loop& loop, Clock::duration timeout);

 private:
  struct State {
    bool set = false;
    std::list<Wait*> waiting;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

class Event::Wait {
 public:
  Wait(std::shared_ptr<State> state, Loop& loop, Clock::duration timeout)
      : state_(std::move(state)), timer_(loop), timeout_(timeout) {}
  Wait(const Wait&) = delete;
  ~Wait() { state_->waiting.remove(this); }

  bool await_ready() const noexcept { return state_->set; }
  void await_suspend(std::coroutine_handle<> handle) {
    handle_ = handle;
    state_->waiting.push_back(this);
    if (timeout_ != Clock::duration::max()) timer_.arm_after(timeout_, [this] { resume(); });
  }
  bool await_resume() const noexcept { return state_->set; }

 private:
  friend class Event;
  void resume() {
    state_->waiting.remove(this);
    timer_.cancel();
    handle_.resume();
  }

  std::shared_ptr<State> state_;
  Timer timer_;
  Clock::duration timeout_;
  std::coroutine_handle<> handle_;
};

inline void Event::set() {
  const std::shared_ptr<State> state = state_;
  state->set = true;
  while (!state->waiting.empty()) state->waiting.front()->resume();
}

inline Event::Wait Event::wait(Loop& loop, Clock::duration timeout) {
  return Wait(state_, loop, timeout);
}

}  // namespace fairlead
