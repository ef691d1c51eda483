// Reactor: waits for descriptors and timers with epoll, and queues the callbacks that are due. In an
// iteration it polls once; then run_one() runs the callbacks that were posted before, those of the
// descriptors and timers that are due, and those that were posted meanwhile. What these post runs in the next
// iteration, so input is polled in between. All functions except post() and stop() are called on the loop
// thread. Private to the layer.
#pragma once

#include <atomic>
#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <mutex>
#include <vector>

#include "fairlead/base/buffer_cache.hpp"
#include "fairlead/base/fifo.hpp"
#include "fairlead/loop/descriptor.hpp"
#include "fairlead/loop/loop.hpp"

namespace fairlead::detail {

class Reactor {
 public:
  using Callback = Loop::Callback;
  using Hook = boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

  // A descriptor or a timer whose callback is due. Its destructor removes it from the queue.
  class Ready : public Hook {
   public:
    Ready() = default;
    Ready(const Ready&) = delete;
    virtual ~Ready() = default;
    // Calls the callback, which may destroy this object.
    virtual void run() = 0;
  };

  // A timer. It is in the heap of the reactor from arm() until it is due or disarmed.
  class TimerEntry : public Ready {
   private:
    friend class Reactor;
    static constexpr std::size_t kNotInHeap = static_cast<std::size_t>(-1);

    Clock::time_point when_;
    std::uint64_t order_ = 0;  // of timers with equal times, the one armed first is due first
    std::size_t index_ = kNotInHeap;
  };

  // A descriptor that the reactor watches.
  class Watched {
   public:
    virtual ~Watched() = default;
    // Called with the events of epoll_wait(); calls enqueue() for what has become ready.
    virtual void on_events(std::uint32_t events) = 0;
  };

  // Throws std::system_error when the process is out of file descriptors.
  Reactor();
  Reactor(const Reactor&) = delete;

  // Waits until a callback is due and runs it. Returns false after stop().
  bool run_one();
  // Thread-safe.
  void stop();
  bool stopped() const noexcept { return stopped_.load(std::memory_order_relaxed); }
  // Queues `callback`. Thread-safe.
  void post(Callback callback);
  // Queues the callback of a descriptor or a timer for the next iteration. Does nothing if it is queued
  // already.
  void enqueue(Ready& ready) noexcept;
  // Destroys the callbacks that are queued, and those that their destructors post.
  void discard_posted();

  // Start and stop to watch a descriptor. rearm() makes epoll report the events that are pending again.
  // Return 0 or an errno value. REQUIRES: remove() is called before the descriptor is closed.
  int add(int fd, std::uint32_t events, Watched& watched) noexcept;
  int rearm(int fd, std::uint32_t events, Watched& watched) noexcept;
  void remove(int fd) noexcept;

  void arm(TimerEntry& timer, Clock::time_point when);
  void disarm(TimerEntry& timer) noexcept;

  // Returns the time of the last update_now(), which is called after waiting and after each callback.
  Clock::time_point now() const noexcept { return now_; }
  void update_now() noexcept { now_ = Clock::now(); }

  // Returns whether the calling thread runs this reactor. Thread-safe.
  bool in_this_thread() const noexcept;
  // While it exists, the thread that has made it runs the reactor.
  class ThreadScope {
   public:
    explicit ThreadScope(const Reactor& reactor);
    ~ThreadScope();
    ThreadScope(const ThreadScope&) = delete;

   private:
    friend class Reactor;
    const Reactor* reactor_;
    const ThreadScope* outer_;  // of another loop, one of whose callbacks runs this one
    BufferCacheScope buffers_;
  };

 private:
  using ReadyList = boost::intrusive::list<Ready, boost::intrusive::base_hook<Hook>,
                                           boost::intrusive::constant_time_size<false>>;

  // Frees large buffers that are not used.
  class BufferTrimTimer final : public TimerEntry {
   public:
    void run() override { trim_buffers(); }
  };

  void poll();
  void arm_trim_timer();
  void take_remote_callbacks();
  int poll_timeout() const;
  void enqueue_due_timers();
  void wake() noexcept;
  bool is_before(const TimerEntry& a, const TimerEntry& b) const noexcept;
  void place(TimerEntry& timer, std::size_t index) noexcept;
  void sift_up(std::size_t index) noexcept;
  void sift_down(std::size_t index) noexcept;
  void remove_from_heap(TimerEntry& timer) noexcept;

  UniqueFd epoll_;
  UniqueFd wake_event_;   // written by other threads; edge-triggered, so it is never read
  ReadyList ready_;       // run in this iteration
  ReadyList next_ready_;  // run in the next iteration
  Fifo<Callback> posted_;
  std::size_t posted_due_ = 0;       // callbacks of posted_ that run now, before those of ready_
  bool has_polled_ = false;          // what ready_ posts in this iteration is not due yet
  std::vector<TimerEntry*> timers_;  // binary heap, the earliest first
  std::uint64_t last_order_ = 0;
  Clock::time_point now_ = Clock::now();
  BufferTrimTimer trim_timer_;
  std::atomic<bool> stopped_ = false;
  std::atomic<bool> has_remote_ = false;
  std::mutex mutex_;
  Fifo<Callback> remote_;  // posted by other threads; guarded by mutex_
};

}  // namespace fairlead::detail
