#include "fairlead/loop/loop.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include <algorithm>
#include <array>
#include <boost/intrusive/list.hpp>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "loop/reactor.hpp"

namespace fairlead {

namespace {

constexpr std::size_t kMinScratchBytes = 64u << 10;
constexpr std::size_t kMaxScratchBytes = 1u << 20;

// Writes a line to stderr without allocating memory.
void report_out_of_memory() noexcept {
  constexpr std::string_view kLine = "fairlead: out of memory: a task was abandoned\n";
  if (::write(STDERR_FILENO, kLine.data(), kLine.size()) < 0) return;
}

// Runs one callback. A callback that throws std::bad_alloc is abandoned; the loop continues. Returns false
// after stop().
bool run_callback(detail::Reactor& reactor) {
  try {
    return reactor.run_one();
  } catch (const std::bad_alloc&) {
    report_out_of_memory();
    return true;
  }
}

// The outermost coroutine of a spawned task. It is linked into its loop for its lifetime, so that the loop's
// destructor can destroy the tasks that are still suspended.
struct SpawnedTask {
  struct promise_type
      : detail::FrameMemory,
        boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
    SpawnedTask get_return_object() noexcept {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    // A task that throws std::bad_alloc ends; other tasks are not affected.
    void unhandled_exception() noexcept {
      try {
        throw;
      } catch (const std::bad_alloc&) {
        report_out_of_memory();
      } catch (...) {
        std::terminate();
      }
    }
  };
  std::coroutine_handle<promise_type> handle;
};

SpawnedTask run_to_end(Task<void> task) {
  co_await task;
}

// Writing to a pipe without a reader must fail with EPIPE and not kill the process, but a library must not
// change signal dispositions. So SIGPIPE is blocked on the loop thread while the loop runs, and a pending one
// is consumed before it is unblocked.
class SigpipeBlocked {
 public:
  SigpipeBlocked() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~SigpipeBlocked() {
    if (sigismember(&before_, SIGPIPE)) return;
    const timespec no_wait{};
    while (sigtimedwait(&pipe_, nullptr, &no_wait) == SIGPIPE) continue;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeBlocked(const SigpipeBlocked&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
};

// Prevents descriptors of the loop from becoming stdin, stdout or stderr if the process was started with some
// of its standard streams closed: occupies their numbers with /dev/null while the loop opens its descriptors.
class StdioNumbersReservation {
 public:
  StdioNumbersReservation() {
    for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      // open() returns the lowest free number, which is `number`.
      if (::fcntl(number, F_GETFD) < 0) fds_[count_++] = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    }
  }
  ~StdioNumbersReservation() {
    for (std::size_t i = 0; i < count_; ++i) ::close(fds_[i]);
  }
  StdioNumbersReservation(const StdioNumbersReservation&) = delete;

 private:
  std::array<int, 3> fds_{};
  std::size_t count_ = 0;
};

using SpawnedTasks =
    boost::intrusive::list<SpawnedTask::promise_type, boost::intrusive::constant_time_size<false>>;

}  // namespace

struct Loop::Impl {
  explicit Impl(Loop& loop) : fair_queue(loop) {}

  detail::Reactor reactor;
  std::vector<std::pair<ServiceKey, std::shared_ptr<void>>> services;
  std::recursive_mutex runner;  // held by the thread that runs the loop
  std::vector<char> scratch;
  TurnMeter turn_meter;
  FairQueue fair_queue;
  SpawnedTasks spawned;

  void begin_first_turn() {
    reactor.update_now();
    turn_meter.begin_first_turn(reactor.now());
  }
  void end_turn() {
    reactor.update_now();
    turn_meter.end_turn(reactor.now());
  }
  void start(Task<void> task) {
    SpawnedTask spawned_task = run_to_end(std::move(task));
    spawned.push_back(spawned_task.handle.promise());
    spawned_task.handle.resume();
  }
};

Loop::Loop() {
  const StdioNumbersReservation reservation;
  impl_ = std::make_unique<Impl>(*this);
}

Loop::~Loop() {
  while (!impl_->spawned.empty()) {
    std::coroutine_handle<SpawnedTask::promise_type>::from_promise(impl_->spawned.front()).destroy();
  }
  while (!impl_->services.empty()) {
    const std::shared_ptr<void> last = std::move(impl_->services.back().second);
    impl_->services.pop_back();
  }
  impl_->fair_queue.clear();
  impl_->reactor.discard_posted();
}

void Loop::run() {
  const std::lock_guard lock(impl_->runner);
  const SigpipeBlocked blocked;
  const detail::Reactor::ThreadScope scope(impl_->reactor);
  impl_->begin_first_turn();
  while (run_callback(impl_->reactor)) impl_->end_turn();
}

void Loop::run_until(const std::function<bool()>& done) {
  const std::lock_guard lock(impl_->runner);
  const SigpipeBlocked blocked;
  const detail::Reactor::ThreadScope scope(impl_->reactor);
  impl_->begin_first_turn();
  while (!done() && !impl_->reactor.stopped()) {
    run_callback(impl_->reactor);
    impl_->end_turn();
  }
}

void Loop::stop() {
  impl_->reactor.stop();
}

void Loop::post(Callback callback) {
  impl_->reactor.post(std::move(callback));
}

void Loop::spawn(Task<void> task) {
  if (in_loop_thread()) {
    impl_->start(std::move(task));
  } else {
    post([impl = impl_.get(), task = std::move(task)]() mutable { impl->start(std::move(task)); });
  }
}

Clock::time_point Loop::now() const noexcept {
  return impl_->reactor.now();
}

bool Loop::in_loop_thread() const noexcept {
  return impl_->reactor.in_this_thread();
}

void Loop::run_until_if_free(const std::function<bool()>& done) {
  const std::unique_lock lock(impl_->runner, std::try_to_lock);
  if (lock) run_until(done);
}

std::span<char> Loop::scratch_buffer() {
  if (impl_->scratch.empty()) impl_->scratch.resize(kMinScratchBytes);
  return impl_->scratch;
}

// If memory is exhausted, the buffer keeps its size.
void Loop::grow_scratch_buffer() {
  if (impl_->scratch.size() >= kMaxScratchBytes) return;
  try {
    impl_->scratch.resize(impl_->scratch.size() * 2);
  } catch (const std::bad_alloc&) {
    report_out_of_memory();
  }
}

FairQueue& Loop::fair_queue() noexcept {
  return impl_->fair_queue;
}

TurnMeter& Loop::turn_meter() noexcept {
  return impl_->turn_meter;
}

std::shared_ptr<void>& Loop::service_slot(ServiceKey key) {
  for (auto& [known_key, service] : impl_->services) {
    if (known_key == key) return service;
  }
  return impl_->services.emplace_back(key, nullptr).second;
}

detail::Reactor& Loop::reactor() noexcept {
  return impl_->reactor;
}

}  // namespace fairlead
