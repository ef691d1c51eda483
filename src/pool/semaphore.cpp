#include "pool/semaphore.hpp"

namespace fairlead::pool {

void Waiter::wake() {
  woken_ = true;
  loop_.post([self = shared_from_this()] { self->resumed_.set(); });
}

Task<bool> Waiter::wait(std::shared_ptr<Waiter> self, Clock::duration timeout, std::stop_token stop) {
  // The callback may run on any thread, from within request_stop().
  const std::stop_callback on_stop(stop, [&loop = self->loop_, weak = self->weak_from_this()] {
    loop.post([weak] {
      if (const auto waiter = weak.lock()) waiter->resumed_.set();
    });
  });
  static_cast<void>(co_await self->resumed_.wait(self->loop_, timeout));
  co_return self->woken_;
}

// A waiter in the queue of a semaphore. If it is destroyed after it was woken with a permit, but before its
// coroutine was resumed, it releases the permit.
struct Semaphore::QueuedWaiter {
  QueuedWaiter(Semaphore& of, bool urgent, CallerKey by)
      : semaphore(of),
        queue(urgent ? of.urgent_queue_ : of.queue_),
        caller(std::move(by)),
        waiter(std::make_shared<Waiter>(of.loop_)),
        position(queue.push(caller, waiter)) {}
  ~QueuedWaiter() {
    if (acquired) return;
    if (waiter->woken()) {
      semaphore.release();
    } else {
      queue.remove(caller, position);
    }
  }
  QueuedWaiter(const QueuedWaiter&) = delete;

  Semaphore& semaphore;
  FairWaitQueue& queue;
  CallerKey caller;
  std::shared_ptr<Waiter> waiter;
  FairWaitQueue::Position position;  // valid until the waiter is woken
  bool acquired = false;
};

Semaphore::Permit Semaphore::try_acquire() {
  if (in_use_ >= limit_ || waiter_count() > 0) return Permit();
  ++in_use_;
  return Permit(shared_from_this());
}

Task<Semaphore::Permit> Semaphore::acquire(Clock::duration timeout, std::stop_token stop, bool urgent,
                                           CallerKey caller) {
  const auto self = shared_from_this();
  Permit permit = try_acquire();
  if (permit) co_return permit;
  QueuedWaiter queued(*this, urgent, std::move(caller));
  const bool woken = co_await Waiter::wait(queued.waiter, timeout, std::move(stop));
  if (!woken) co_return Permit();
  queued.acquired = true;
  co_return Permit(self);
}

void Semaphore::set_limit(std::size_t limit) {
  limit_ = limit;
  wake_waiters();
}

void Semaphore::wake_waiters() {
  while (in_use_ < limit_ && waiter_count() > 0) {
    const std::shared_ptr<Waiter> next = (urgent_queue_.empty() ? queue_ : urgent_queue_).pop();
    ++in_use_;
    next->wake();
  }
}

}  // namespace fairlead::pool
