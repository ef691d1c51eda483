#include "pool/gate.hpp"

namespace fairlead::pool {

void Waiter::call() {
  called_ = true;
  loop_.post([self = shared_from_this()] { self->woken_.set(); });
}

Task<bool> Waiter::wait(std::shared_ptr<Waiter> self, Clock::duration timeout, std::stop_token stop) {
  // May run on any thread, and inside the code that asked to stop.
  const std::stop_callback on_stop(stop, [&loop = self->loop_, weak = self->weak_from_this()] {
    loop.post([weak] {
      if (const auto waiter = weak.lock()) waiter->woken_.set();
    });
  });
  const bool woken = co_await self->woken_.wait(self->loop_, timeout);
  static_cast<void>(woken);
  co_return self->called_;
}

// One place in line. Whoever goes away after being let in, but before noticing it, leaves again.
struct Gate::Standing {
  Standing(Gate& at, bool urgent, Caller who)
      : gate(at),
        line(urgent ? at.urgent_line_ : at.line_),
        caller(std::move(who)),
        waiter(std::make_shared<Waiter>(at.loop_)),
        place(line.push(caller, waiter)) {}
  ~Standing() {
    if (taken) return;
    if (waiter->called()) {
      gate.leave();
    } else {
      line.remove(caller, place);
    }
  }
  Standing(const Standing&) = delete;

  Gate& gate;
  FairLine& line;
  Caller caller;
  std::shared_ptr<Waiter> waiter;
  FairLine::Place place;  // valid until the waiter is called
  bool taken = false;
};

Gate::Pass Gate::try_enter() {
  if (inside_ >= limit_ || waiting() > 0) return Pass();
  ++inside_;
  return Pass(shared_from_this());
}

Task<Gate::Pass> Gate::enter(Clock::duration timeout, std::stop_token stop, bool urgent, Caller caller) {
  const auto keep = shared_from_this();
  Pass at_once = try_enter();
  if (at_once) co_return at_once;
  Standing standing(*this, urgent, std::move(caller));
  Task<bool> waiting = Waiter::wait(standing.waiter, timeout, std::move(stop));
  const bool called = co_await waiting;
  if (!called) co_return Pass();
  standing.taken = true;
  co_return Pass(keep);
}

// The place of the one who leaves is given to the next in line before that one knows.
void Gate::leave() {
  --inside_;
  while (inside_ < limit_ && waiting() > 0) {
    const std::shared_ptr<Waiter> next = (urgent_line_.empty() ? line_ : urgent_line_).pop();
    ++inside_;
    next->call();
  }
}

}  // namespace fairlead::pool
