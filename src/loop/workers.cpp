#include "fairlead/loop/workers.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace fairlead {

struct Workers::Impl {
  std::size_t max_threads;
  std::size_t max_queue;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::move_only_function<void()>> queue;
  std::size_t idle = 0;
  bool stopping = false;
  std::vector<std::jthread> threads;

  void run_jobs() {
    std::unique_lock lock(mutex);
    while (true) {
      ++idle;
      changed.wait(lock, [this] { return stopping || !queue.empty(); });
      --idle;
      if (stopping) return;
      auto job = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      job();
      job = nullptr;
      lock.lock();
    }
  }
};

Workers::Workers(const Limits& limits) : impl_(std::make_unique<Impl>()) {
  impl_->max_threads = limits.max_blocking_threads;
  impl_->max_queue = limits.max_blocking_queue;
}

Workers::~Workers() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->changed.notify_all();
  impl_->threads.clear();
}

Result<void> Workers::submit(std::move_only_function<void()> job) {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->queue.size() >= impl_->max_queue) {
    return Error(ErrorKind::resource_exhausted, "max_blocking_queue (" + std::to_string(impl_->max_queue) +
                                                    ") jobs are already waiting for a thread");
  }
  impl_->queue.push_back(std::move(job));
  if (impl_->queue.size() > impl_->idle && impl_->threads.size() < impl_->max_threads) {
    impl_->threads.emplace_back([impl = impl_.get()] { impl->run_jobs(); });
  }
  impl_->changed.notify_one();
  return {};
}

}  // namespace fairlead
