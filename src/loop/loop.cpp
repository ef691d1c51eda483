#include "fairlead/loop/loop.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include <algorithm>
#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/intrusive/list.hpp>
#include <mutex>
#include <new>
#include <string_view>
#include <vector>

namespace fairlead {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kFirstScratch = 64u << 10;
constexpr std::size_t kLargestScratch = 1u << 20;
constexpr std::size_t kLargestRemembered = 4u << 20;

// Allocates nothing.
void report_out_of_memory() noexcept {
  constexpr std::string_view kLine = "fairlead: out of memory: a task was given up\n";
  if (::write(STDERR_FILENO, kLine.data(), kLine.size()) < 0) return;
}

// One callback. One for which there is no memory is given up; the loop goes on.
std::size_t run_callback(asio::io_context& context) {
  try {
    return context.run_one();
  } catch (const std::bad_alloc&) {
    report_out_of_memory();
    return 1;
  }
}

// A spawned task's outermost frame. It is linked into its loop while it lives, so that a loop that ends
// can destroy what is still suspended.
struct Root {
  struct promise_type
      : boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
    Root get_return_object() noexcept { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    // A task for which there is no memory ends; everything else goes on.
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

Root run_to_end(Task<void> task) {
  co_await task;
}

// Writing to a pipe nobody reads must be an error, not a death, and a library may not change the process's
// dispositions. So SIGPIPE is blocked on the loop's thread while the loop runs, and swallowed before that
// ends.
class SigpipeBlocked {
 public:
  SigpipeBlocked() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~SigpipeBlocked() {
    if (sigismember(&before_, SIGPIPE)) return;
    const timespec at_once{};
    while (sigtimedwait(&pipe_, nullptr, &at_once) == SIGPIPE) continue;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeBlocked(const SigpipeBlocked&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
};

// A program may be started with some of its standard streams closed. The loop's own descriptors must not get
// their numbers: whoever then looks for stdin would find the loop.
class StandardNumbersTaken {
 public:
  StandardNumbersTaken() {
    for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      // The lowest free number is the one that is given out, so this takes exactly the closed ones.
      if (::fcntl(number, F_GETFD) < 0) taken_[used_++] = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    }
  }
  ~StandardNumbersTaken() {
    for (std::size_t i = 0; i < used_; ++i) ::close(taken_[i]);
  }
  StandardNumbersTaken(const StandardNumbersTaken&) = delete;

 private:
  std::array<int, 3> taken_{};
  std::size_t used_ = 0;
};

using Roots = boost::intrusive::list<Root::promise_type, boost::intrusive::constant_time_size<false>>;

}  // namespace

struct Loop::Impl {
  explicit Impl(Loop& loop) : fair(loop) {}

  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  // Made now, so that being out of descriptors shows here and not at whatever waits for one first.
  asio::posix::stream_descriptor reactor_maker{context};
  std::recursive_mutex runner;  // held by the thread that runs the loop
  std::vector<char> scratch;
  std::array<Bytes, 8> large;
  std::size_t next_large = 0;
  TurnMeter turns;
  FairQueue fair;
  Roots roots;

  void start(Task<void> task) {
    Root root = run_to_end(std::move(task));
    roots.push_back(root.handle.promise());
    root.handle.resume();
  }
};

Loop::Loop() {
  const StandardNumbersTaken taken;
  impl_ = std::make_unique<Impl>(*this);
}

Loop::~Loop() {
  while (!impl_->roots.empty()) {
    std::coroutine_handle<Root::promise_type>::from_promise(impl_->roots.front()).destroy();
  }
}

void Loop::run() {
  const std::lock_guard lock(impl_->runner);
  const SigpipeBlocked blocked;
  impl_->turns.begin();
  while (run_callback(impl_->context) > 0) impl_->turns.end_turn();
}

void Loop::run_until(const std::function<bool()>& done) {
  const std::lock_guard lock(impl_->runner);
  const SigpipeBlocked blocked;
  impl_->turns.begin();
  while (!done() && !impl_->context.stopped()) {
    run_callback(impl_->context);
    impl_->turns.end_turn();
  }
}

void Loop::stop() {
  impl_->context.stop();
}

void Loop::post(Callback callback) {
  asio::post(impl_->context, std::move(callback));
}

void Loop::spawn(Task<void> task) {
  if (here()) {
    impl_->start(std::move(task));
  } else {
    post([impl = impl_.get(), task = std::move(task)]() mutable { impl->start(std::move(task)); });
  }
}

bool Loop::here() const noexcept {
  return impl_->context.get_executor().running_in_this_thread();
}

void Loop::run_until_if_free(const std::function<bool()>& done) {
  const std::unique_lock lock(impl_->runner, std::try_to_lock);
  if (lock) run_until(done);
}

std::span<char> Loop::scratch() {
  if (impl_->scratch.empty()) impl_->scratch.resize(kFirstScratch);
  return impl_->scratch;
}

// Where there is no memory for more, what there is has to do.
void Loop::grow_scratch() {
  if (impl_->scratch.size() >= kLargestScratch) return;
  try {
    impl_->scratch.resize(impl_->scratch.size() * 2);
  } catch (const std::bad_alloc&) {
    report_out_of_memory();
  }
}

std::string Loop::large_buffer() {
  for (Bytes& block : impl_->large) {
    std::string buffer = block.reclaim();
    if (buffer.capacity() >= kFirstScratch) return buffer;
  }
  return {};
}

void Loop::remember_large(const Bytes& block) {
  if (block.size() > kLargestRemembered) return;
  const auto free = std::ranges::find_if(impl_->large, &Bytes::empty);
  if (free != impl_->large.end()) {
    *free = block;
  } else {
    impl_->large[impl_->next_large++ % impl_->large.size()] = block;
  }
}

FairQueue& Loop::fair() noexcept {
  return impl_->fair;
}

TurnMeter& Loop::turns() noexcept {
  return impl_->turns;
}

asio::io_context& Loop::context() noexcept {
  return impl_->context;
}

}  // namespace fairlead
