// Implementation of Database: a queue of jobs, and a thread that runs them with a driver.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <thread>

#include "fairlead/loop/event.hpp"
#include "sql/driver.hpp"

namespace fairlead::sql {

class DatabaseImpl final : public Database {
 public:
  // Wakes the thread for a new job, and interrupts what it waits for.
  struct Events {
    EventFd wake;
    EventFd interrupt;
  };
  DatabaseImpl(Loop& loop, std::vector<Migration> migrations, DatabaseOptions options, Events events);
  ~DatabaseImpl() override;

  // Starts the thread, which connects to `address` and applies the migrations, and returns the outcome.
  Task<Result<void>> start(std::string address);

  Task<Result<void>> run(Job job) override;
  void on_notification(std::function<void()> callback) override;
  void on_availability(std::function<void(const std::optional<Error>&)> callback) override;
  std::optional<Error> problem() const override;
  bool is_postgresql() const noexcept override { return driver_->is_postgresql(); }
  Task<void> close() override;

 private:
  // A job and its outcome. The thread of the database owns it from take() until it posts it to the loop.
  struct Submission {
    explicit Submission(Job submitted) : job(std::move(submitted)) {}
    Job job;
    std::optional<Result<void>> outcome;  // loop thread only
    Event finished;                       // loop thread only
  };
  using SubmissionPtr = std::shared_ptr<Submission>;

  // Used on the loop thread; callbacks that the thread of the database posts refer to it. The exception is
  // notification_posted.
  struct LoopState {
    std::function<void()> notified;
    std::function<void(const std::optional<Error>&)> availability_changed;
    std::optional<Result<void>> opened;
    Event opened_event;
    Event closed_event;
    std::atomic<bool> notification_posted = false;
  };

  Result<void> submit(const SubmissionPtr& submission);
  bool is_closing() const;

  // On the thread of the database.
  void run_thread();
  void serve_jobs();
  Result<void> connect();
  void reconnect();
  SubmissionPtr take();
  void run_submission(SubmissionPtr submission);
  Result<void> begin();
  void wait_when_idle();
  bool wait_for_events(int driver_fd, std::chrono::milliseconds timeout);
  void read_notifications();
  void after_failure(const Error& error);
  void set_problem(std::optional<Error> problem);
  void fail_queued_jobs(const Error& error);
  void post_outcome(SubmissionPtr submission, Result<void> outcome);
  void post_notification();

  // Constant, or thread-safe.
  Loop& loop_;
  const std::vector<Migration> migrations_;
  const DatabaseOptions options_;
  const EventFd wake_;
  Interrupt interrupt_;
  const std::shared_ptr<LoopState> loop_state_;

  // Used on the thread of the database only, while it runs.
  std::unique_ptr<Driver> driver_;
  std::chrono::milliseconds reconnect_delay_;

  mutable std::mutex mutex_;
  std::deque<SubmissionPtr> queue_;  // guarded by mutex_
  std::optional<Error> problem_;     // guarded by mutex_
  bool closing_ = false;             // guarded by mutex_

  std::thread thread_;
};

}  // namespace fairlead::sql
