// The part of DatabaseImpl that runs on the loop.
#include "sql/database.hpp"

#include <system_error>

#include "sql/database_impl.hpp"

namespace fairlead::sql {

Task<Result<std::shared_ptr<Database>>> Database::open(Loop& loop, std::string address,
                                                       std::vector<Migration> migrations,
                                                       DatabaseOptions options) {
  Result<EventFd> wake = EventFd::create();
  Result<EventFd> interrupt = EventFd::create();
  if (!wake) co_return wake.error();
  if (!interrupt) co_return interrupt.error();
  DatabaseImpl::Events events(std::move(*wake), std::move(*interrupt));
  const auto database =
      std::make_shared<DatabaseImpl>(loop, std::move(migrations), std::move(options), std::move(events));
  const Result<void> started = co_await database->start(std::move(address));
  if (!started) co_return started.error();
  co_return std::shared_ptr<Database>(database);
}

DatabaseImpl::DatabaseImpl(Loop& loop, std::vector<Migration> migrations, DatabaseOptions options,
                           Events events)
    : loop_(loop),
      migrations_(std::move(migrations)),
      options_(std::move(options)),
      wake_(std::move(events.wake)),
      interrupt_(std::move(events.interrupt)),
      loop_state_(std::make_shared<LoopState>()),
      reconnect_delay_(options_.first_reconnect_delay) {}

DatabaseImpl::~DatabaseImpl() {
  loop_state_->notified = nullptr;
  loop_state_->availability_changed = nullptr;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  interrupt_.raise();
  if (thread_.joinable()) thread_.join();
}

Task<Result<void>> DatabaseImpl::start(std::string address) {
  Result<std::unique_ptr<Driver>> driver = make_driver(address, options_, interrupt_);
  if (!driver) co_return driver.error();
  driver_ = std::move(*driver);
  try {
    thread_ = std::thread([this] { run_thread(); });
  } catch (const std::system_error& error) {
    co_return Error::from_errno(ErrorKind::resource_exhausted, "starting the thread of the database",
                                error.code().value());
  }
  co_await loop_state_->opened_event.wait(loop_);
  co_return *loop_state_->opened;
}

Task<Result<void>> DatabaseImpl::run(Job job) {
  const auto submission = std::make_shared<Submission>(std::move(job));
  Result<void> submitted = submit(submission);
  if (!submitted) co_return submitted;
  co_await submission->finished.wait(loop_);
  co_return std::move(*submission->outcome);
}

Result<void> DatabaseImpl::submit(const SubmissionPtr& submission) {
  const std::lock_guard lock(mutex_);
  if (closing_) return closed_error();
  if (problem_) return *problem_;
  if (queue_.size() >= options_.max_queued_jobs)
    return Error(ErrorKind::resource_exhausted, "max_queued_jobs (" + std::to_string(queue_.size()) +
                                                    ") jobs are already waiting for the database");
  queue_.push_back(submission);
  wake_.set();
  return {};
}

void DatabaseImpl::on_notification(std::function<void()> callback) {
  loop_state_->notified = std::move(callback);
}

void DatabaseImpl::on_availability(std::function<void(const std::optional<Error>&)> callback) {
  loop_state_->availability_changed = std::move(callback);
}

std::optional<Error> DatabaseImpl::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

bool DatabaseImpl::is_closing() const {
  const std::lock_guard lock(mutex_);
  return closing_;
}

// The frame keeps the database alive until its thread has ended.
Task<void> DatabaseImpl::close() {
  const std::shared_ptr<Database> self = shared_from_this();
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.set();
  co_await loop_state_->closed_event.wait(loop_);
}

}  // namespace fairlead::sql
