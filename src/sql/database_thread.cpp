// The part of DatabaseImpl that runs on the thread of the database.
#include <poll.h>

#include <algorithm>
#include <array>

#include "sql/database_impl.hpp"
#include "sql/job_transaction.hpp"
#include "sql/migrate.hpp"

namespace fairlead::sql {

namespace {

Error unreachable_error(const Error& reason) {
  const std::string& code = reason.detail().failure_code;
  return database_error(ErrorKind::io, "the database cannot be used: " + reason.message(),
                        code == kSchemaTooNew ? kSchemaTooNew : kDatabaseUnavailable);
}

}  // namespace

void DatabaseImpl::run_thread() {
  Result<void> opened = connect();
  const bool succeeded = opened.has_value();
  loop_.post([state = loop_state_, opened = std::move(opened)]() mutable {
    state->opened.emplace(std::move(opened));
    state->opened_event.set();
  });
  if (succeeded) serve_jobs();
  driver_->disconnect();
  fail_queued_jobs(closed_error());
  loop_.post([state = loop_state_] { state->closed_event.set(); });
}

void DatabaseImpl::serve_jobs() {
  while (!interrupt_.raised) {
    const bool closing = is_closing();  // no job is added to the queue after this
    SubmissionPtr next = driver_->connected() ? take() : nullptr;
    if (next) {
      run_submission(std::move(next));
    } else if (closing) {
      return;
    } else if (!driver_->connected()) {
      reconnect();
    } else {
      wait_when_idle();
    }
  }
}

// The schema may be another one after a reconnect: the database may have been restored or upgraded meanwhile.
Result<void> DatabaseImpl::connect() {
  Result<void> connected = driver_->connect();
  if (connected) connected = migrate(*driver_, migrations_);
  if (!connected) driver_->disconnect();
  return connected;
}

void DatabaseImpl::reconnect() {
  if (problem()) {
    wait_for_events(-1, reconnect_delay_);
    reconnect_delay_ = std::min(2 * reconnect_delay_, options_.max_reconnect_delay);
    if (interrupt_.raised || is_closing()) return;
  }
  if (const Result<void> connected = connect(); !connected) return set_problem(connected.error());
  reconnect_delay_ = options_.first_reconnect_delay;
  set_problem(std::nullopt);
  post_notification();
}

DatabaseImpl::SubmissionPtr DatabaseImpl::take() {
  const std::lock_guard lock(mutex_);
  if (queue_.empty()) return nullptr;
  SubmissionPtr first = std::move(queue_.front());
  queue_.pop_front();
  return first;
}

void DatabaseImpl::run_submission(SubmissionPtr submission) {
  Result<void> outcome = begin();
  if (outcome) outcome = finish_transaction(*driver_, submission->job);
  if (!outcome) after_failure(outcome.error());
  post_outcome(std::move(submission), std::move(outcome));
  read_notifications();
}

// A connection that the server has closed is made again: nothing is lost, because the job has not begun.
Result<void> DatabaseImpl::begin() {
  Result<void> begun = driver_->begin();
  if (begun || driver_->connected() || driver_->timed_out()) return begun;
  Result<void> connected = connect();
  if (!connected) return connected;
  post_notification();
  return driver_->begin();
}

void DatabaseImpl::wait_when_idle() {
  const int driver_fd = driver_->fd();
  const auto timeout = driver_fd < 0 ? std::chrono::milliseconds(-1) : options_.idle_check;
  if (wait_for_events(driver_fd, timeout)) return read_notifications();
  if (const Result<void> checked = driver_->check(); !checked) return after_failure(checked.error());
  // A notification that arrived with the response of the check is not announced by the socket any more.
  read_notifications();
}

// Waits until a job is submitted, the database is closed, or `driver_fd` is readable. Returns false if
// `timeout` passes first; a negative timeout never does.
bool DatabaseImpl::wait_for_events(int driver_fd, std::chrono::milliseconds timeout) {
  std::array<pollfd, 3> events{
      {{wake_.fd(), POLLIN, 0}, {interrupt_.event.fd(), POLLIN, 0}, {driver_fd, POLLIN, 0}}};
  const int ready = ::poll(events.data(), events.size(), static_cast<int>(timeout.count()));
  if (events[0].revents) wake_.clear();
  return ready != 0;
}

void DatabaseImpl::read_notifications() {
  if (!driver_->connected()) return;
  const Result<bool> notified = driver_->read_notifications();
  if (!notified) return after_failure(notified.error());
  if (*notified) post_notification();
}

// A server that does not respond is unreachable at once. If the connection was closed, reconnect() first
// tries to make it again.
void DatabaseImpl::after_failure(const Error& error) {
  if (driver_->connected() || interrupt_.raised) return;
  options_.log.warning("the connection to the database was lost", {{"error", error.message()}});
  if (driver_->timed_out()) set_problem(error);
}

// Jobs that are queued now and later jobs fail with `problem`.
void DatabaseImpl::set_problem(std::optional<Error> problem) {
  if (problem) problem = unreachable_error(*problem);
  bool changed = false;
  {
    const std::lock_guard lock(mutex_);
    changed = problem_.has_value() != problem.has_value();
    problem_ = problem;
  }
  if (problem) fail_queued_jobs(*problem);
  if (!changed) return;
  options_.log.warning(problem ? problem->message() : "the database can be reached again");
  loop_.post([state = loop_state_, problem = std::move(problem)] {
    const auto callback = state->availability_changed;
    if (callback) callback(problem);
  });
}

void DatabaseImpl::fail_queued_jobs(const Error& error) {
  std::deque<SubmissionPtr> queued;
  {
    const std::lock_guard lock(mutex_);
    queued.swap(queue_);
  }
  for (SubmissionPtr& submission : queued) post_outcome(std::move(submission), error);
}

// The submission and its job are destroyed on the loop thread.
void DatabaseImpl::post_outcome(SubmissionPtr submission, Result<void> outcome) {
  loop_.post([submission = std::move(submission), outcome = std::move(outcome)]() mutable {
    submission->outcome.emplace(std::move(outcome));
    submission->finished.set();
  });
}

void DatabaseImpl::post_notification() {
  if (loop_state_->notification_posted.exchange(true)) return;
  loop_.post([state = loop_state_] {
    state->notification_posted = false;
    const auto callback = state->notified;
    if (callback) callback();
  });
}

}  // namespace fairlead::sql
