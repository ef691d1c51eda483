#include "loop/reactor.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

namespace fairlead::detail {

namespace {

constexpr int kMaxEventsPerPoll = 256;
constexpr std::chrono::seconds kBufferTrimInterval{1};

thread_local const Reactor::ThreadScope* innermost_scope = nullptr;

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::system_category(), what);
}

}  // namespace

Reactor::ThreadScope::ThreadScope(const Reactor& reactor)
    : reactor_(&reactor), outer_(std::exchange(innermost_scope, this)) {}

Reactor::ThreadScope::~ThreadScope() {
  innermost_scope = outer_;
}

bool Reactor::in_this_thread() const noexcept {
  for (const ThreadScope* scope = innermost_scope; scope; scope = scope->outer_) {
    if (scope->reactor_ == this) return true;
  }
  return false;
}

Reactor::Reactor() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw_errno("epoll_create1");
  wake_event_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_event_) throw_errno("eventfd");
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_event_.get(), &event) != 0) throw_errno("epoll_ctl");
}

// ---- callbacks -------------------------------------------------------------------------------------------

bool Reactor::run_one() {
  while (!stopped()) {
    if (posted_due_ > 0) {
      --posted_due_;
      Callback callback = std::move(posted_.front());
      posted_.pop();
      callback();
      return true;
    }
    if (!ready_.empty()) {
      Ready& ready = ready_.front();
      ready_.pop_front();
      ready.run();
      return true;
    }
    if (std::exchange(has_polled_, false)) {
      posted_due_ = posted_.size();
    } else {
      poll();
    }
  }
  return false;
}

void Reactor::stop() {
  stopped_.store(true, std::memory_order_relaxed);
  wake();
}

void Reactor::post(Callback callback) {
  if (in_this_thread()) return posted_.push(std::move(callback));
  {
    const std::lock_guard lock(mutex_);
    remote_.push(std::move(callback));
  }
  if (!has_remote_.exchange(true)) wake();
}

void Reactor::enqueue(Ready& ready) noexcept {
  if (!ready.is_linked()) next_ready_.push_back(ready);
}

void Reactor::discard_posted() {
  posted_due_ = 0;
  while (true) {
    take_remote_callbacks();
    if (posted_.empty()) return;
    const Fifo<Callback> discarded = std::exchange(posted_, Fifo<Callback>());
  }
}

void Reactor::take_remote_callbacks() {
  // Cleared before the callbacks are taken: a callback that is posted from now on wakes the loop again.
  if (!has_remote_.exchange(false)) return;
  const std::lock_guard lock(mutex_);
  if (posted_.empty()) return std::swap(posted_, remote_);
  // Out of memory: the callbacks that were not moved stay where they are, and are taken later.
  has_remote_ = true;
  while (!remote_.empty()) {
    posted_.push(std::move(remote_.front()));
    remote_.pop();
  }
  has_remote_ = false;
}

void Reactor::wake() noexcept {
  const std::uint64_t one = 1;
  // Fails only if the counter is at its maximum. Then an event is pending.
  static_cast<void>(::write(wake_event_.get(), &one, sizeof one));
}

// ---- polling ---------------------------------------------------------------------------------------------

void Reactor::arm_trim_timer() {
  const bool armed = trim_timer_.index_ != TimerEntry::kNotInHeap || trim_timer_.is_linked();
  if (!armed && cached_buffer_bytes() > 0) arm(trim_timer_, Clock::now() + kBufferTrimInterval);
}

void Reactor::poll() {
  take_remote_callbacks();
  arm_trim_timer();
  std::array<epoll_event, kMaxEventsPerPoll> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), kMaxEventsPerPoll, poll_timeout());
  update_now();
  bool woken = false;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.ptr) {
      static_cast<Watched*>(event.data.ptr)->on_events(event.events);
    } else {
      woken = true;
    }
  }
  if (woken) take_remote_callbacks();
  enqueue_due_timers();
  ready_.splice(ready_.end(), next_ready_);
  posted_due_ = posted_.size();
  has_polled_ = true;
}

// Returns the timeout for epoll_wait(), in milliseconds, rounded up: a timer is never early.
int Reactor::poll_timeout() const {
  if (!posted_.empty() || !next_ready_.empty()) return 0;
  if (timers_.empty()) return -1;
  const Clock::duration left = timers_.front()->when_ - Clock::now();
  if (left <= Clock::duration::zero()) return 0;
  constexpr std::chrono::milliseconds kMax{std::numeric_limits<int>::max() / 2};
  if (left >= kMax) return static_cast<int>(kMax.count());
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

int Reactor::add(int fd, std::uint32_t events, Watched& watched) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &watched;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
}

int Reactor::rearm(int fd, std::uint32_t events, Watched& watched) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &watched;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0 ? 0 : errno;
}

void Reactor::remove(int fd) noexcept {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

// ---- timers ----------------------------------------------------------------------------------------------

void Reactor::arm(TimerEntry& timer, Clock::time_point when) {
  disarm(timer);
  timers_.push_back(&timer);
  timer.when_ = when;
  timer.order_ = ++last_order_;
  timer.index_ = timers_.size() - 1;
  sift_up(timer.index_);
}

void Reactor::disarm(TimerEntry& timer) noexcept {
  if (timer.index_ != TimerEntry::kNotInHeap) remove_from_heap(timer);
  if (timer.is_linked()) timer.unlink();
}

void Reactor::enqueue_due_timers() {
  if (timers_.empty()) return;
  while (!timers_.empty() && timers_.front()->when_ <= now_) {
    TimerEntry& due = *timers_.front();
    remove_from_heap(due);
    next_ready_.push_back(due);
  }
}

bool Reactor::is_before(const TimerEntry& a, const TimerEntry& b) const noexcept {
  return a.when_ != b.when_ ? a.when_ < b.when_ : a.order_ < b.order_;
}

void Reactor::place(TimerEntry& timer, std::size_t index) noexcept {
  timers_[index] = &timer;
  timer.index_ = index;
}

void Reactor::sift_up(std::size_t index) noexcept {
  TimerEntry& timer = *timers_[index];
  while (index > 0) {
    const std::size_t parent = (index - 1) / 2;
    if (!is_before(timer, *timers_[parent])) break;
    place(*timers_[parent], index);
    index = parent;
  }
  place(timer, index);
}

void Reactor::sift_down(std::size_t index) noexcept {
  TimerEntry& timer = *timers_[index];
  while (true) {
    std::size_t child = 2 * index + 1;
    if (child >= timers_.size()) break;
    if (child + 1 < timers_.size() && is_before(*timers_[child + 1], *timers_[child])) ++child;
    if (!is_before(*timers_[child], timer)) break;
    place(*timers_[child], index);
    index = child;
  }
  place(timer, index);
}

void Reactor::remove_from_heap(TimerEntry& timer) noexcept {
  const std::size_t index = std::exchange(timer.index_, TimerEntry::kNotInHeap);
  TimerEntry& last = *timers_.back();
  timers_.pop_back();
  if (&last == &timer) return;
  place(last, index);
  sift_up(index);
  sift_down(last.index_);
}

}  // namespace fairlead::detail
