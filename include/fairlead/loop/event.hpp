// Event: coroutines of one loop wait for it until it is set. Setting it wakes all of them; it stays set.
#pragma once

#include <coroutine>
#include <list>

#include "fairlead/loop/timer.hpp"

namespace fairlead {

class Event {
 public:
  class Wait;

  bool is_set() const noexcept { return set_; }
  // Resumes those who wait, one after the other, before it returns.
  void set();
  void reset() noexcept { set_ = false; }
  // co_await: true when it was set, false when `timeout` passed first.
  Wait wait(Loop& loop, Clock::duration timeout);

 private:
  bool set_ = false;
  std::list<Wait*> waiting_;
};

class Event::Wait {
 public:
  Wait(Event& event, Loop& loop, Clock::duration timeout) : event_(event), timer_(loop), timeout_(timeout) {}
  Wait(const Wait&) = delete;
  ~Wait() { event_.waiting_.remove(this); }

  bool await_ready() const noexcept { return event_.set_; }
  void await_suspend(std::coroutine_handle<> handle) {
    handle_ = handle;
    event_.waiting_.push_back(this);
    timer_.arm_after(timeout_, [this] { resume(); });
  }
  bool await_resume() const noexcept { return event_.set_; }

 private:
  friend class Event;
  void resume() {
    event_.waiting_.remove(this);
    timer_.cancel();
    handle_.resume();
  }

  Event& event_;
  Timer timer_;
  Clock::duration timeout_;
  std::coroutine_handle<> handle_;
};

inline void Event::set() {
  set_ = true;
  while (!waiting_.empty()) waiting_.front()->resume();
}

inline Event::Wait Event::wait(Loop& loop, Clock::duration timeout) {
  return Wait(*this, loop, timeout);
}

}  // namespace fairlead
