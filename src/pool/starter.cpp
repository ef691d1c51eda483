#include "pool/starter.hpp"

#include "fairlead/process/failure.hpp"
#include "pool/upstream.hpp"

namespace fairlead::pool {

namespace {

// The delay before a server with `keep_running` waits again for a permit of max_stdio_processes.
constexpr std::chrono::seconds kPermitRetryDelay{1};

}  // namespace

// ---- waiting ---------------------------------------------------------------------------------------------

Task<Result<void>> Starter::wait_until_ready(std::stop_token stop, StartPriority priority,
                                             std::string client) {
  const auto self = upstream_.shared_from_this();
  PoolCore& core = *upstream_.core;
  if (upstream_.lifecycle.action_if_start_requested() == Action::refuse) co_return refusal_error();
  const Result<WaitingCalls::Entry> entry = core.waiting_calls.add(client, upstream_.spec().clocks.queue);
  if (!entry) co_return entry.error();
  const auto waiter = std::make_shared<Waiter>(core.loop);
  const bool first = !attempt_;
  if (first) attempt_ = std::make_shared<Attempt>();
  const std::shared_ptr<Attempt> attempt = attempt_;
  attempt->waiters.push_back(waiter);
  if (priority == StartPriority::call && std::exchange(attempt->priority, priority) != StartPriority::call &&
      attempt->queued)
    attempt->requeue.request_stop();
  if (first) core.loop.spawn(run(self));
  Task<bool> waiting = Waiter::wait(waiter, Clock::duration::max(), stop);
  const bool woken = co_await waiting;
  if (!woken) {
    attempt->waiters.remove(waiter);
    if (attempt->queued && !still_wanted(*attempt)) attempt->requeue.request_stop();
    co_return with_failure_code(Error(
        ErrorKind::cancelled, "cancelled while waiting for the start of server " + upstream_.spec().name));
  }
  if (attempt->error) co_return *attempt->error;
  co_return Result<void>();
}

void Starter::start() {
  if (attempt_ || upstream_.ready()) return;
  attempt_ = std::make_shared<Attempt>();
  upstream_.core->loop.spawn(run(upstream_.shared_from_this()));
}

void Starter::finish(std::optional<Error> error) {
  release_start_permit();
  const std::shared_ptr<Attempt> attempt = std::exchange(attempt_, nullptr);
  if (!attempt) return;
  attempt->error = std::move(error);
  for (const auto& waiter : attempt->waiters) waiter->wake();
  if (upstream_.inactive()) upstream_.post_inactive_check();
}

void Starter::wake_queued_start() {
  if (attempt_ && attempt_->queued) attempt_->requeue.request_stop();
}

Error Starter::refusal_error() const {
  const std::string& server = upstream_.spec().name;
  if (upstream_.state() != UpstreamState::crash_loop) {
    return with_failure_code(Error(ErrorKind::connection_failed, "server " + server + " is stopped"),
                             failure::server_stopped);
  }
  const Supervisor& supervisor = upstream_.lifecycle.supervisor();
  const Error& last = *upstream_.failures.last_error();
  const Clock::duration left = supervisor.retry_at() - Clock::now();
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(left).count();
  Error error(last.kind(), "server " + server + " has failed " +
                               std::to_string(supervisor.consecutive_failures()) +
                               " times in a row and will not be started for another " +
                               std::to_string(seconds) + " s: " + last.message());
  return with_retry_after(std::move(error).with([&](ErrorDetail& d) { d = last.detail(); }), left);
}

Error Starter::queue_timeout_error() const {
  const std::optional<Error>& last = upstream_.failures.last_error();
  const std::string cause = upstream_.state() == UpstreamState::backing_off
                                ? " is backing off"
                                : " waits for the end of its previous process";
  Error error(ErrorKind::timeout, "server " + upstream_.spec().name + cause +
                                      (last ? ", after: " + last->message() : std::string()));
  if (last) error = std::move(error).with([&](ErrorDetail& d) { d = last->detail(); });
  const Clock::duration left = upstream_.lifecycle.supervisor().retry_at() - Clock::now();
  return with_retry_after(with_failure_code(std::move(error)),
                          std::max<Clock::duration>(left, std::chrono::seconds(1)));
}

bool Starter::still_wanted(const Attempt& attempt) const noexcept {
  return upstream_.spec().keep_running || !attempt.waiters.empty();
}

Task<Result<Semaphore::Permit>> Starter::acquire_start_permit(std::shared_ptr<ManagedUpstream> self,
                                                              std::shared_ptr<Attempt> attempt,
                                                              Clock::time_point deadline) {
  const Starter& starter = self->starter;
  const std::shared_ptr<Semaphore> start_permits = self->core->start_permits;
  while (true) {
    if (self->lifecycle.action_if_start_requested() == Action::refuse) co_return starter.refusal_error();
    const bool urgent = attempt->priority == StartPriority::call;
    const Clock::duration timeout = std::max(deadline - Clock::now(), Clock::duration::zero());
    const std::stop_token interrupted = attempt->requeue.get_token();
    attempt->queued = true;
    Task<Semaphore::Permit> acquiring =
        start_permits->acquire(urgent ? timeout : Clock::duration::max(), interrupted, urgent);
    Semaphore::Permit permit = co_await acquiring;
    attempt->queued = false;
    if (permit) co_return permit;
    if (!starter.still_wanted(*attempt)) {
      co_return with_failure_code(
          Error(ErrorKind::cancelled, "no call waits for the start of server " + self->spec().name));
    }
    if (!interrupted.stop_requested()) {
      co_return limit_error("max_concurrent_starts (" + std::to_string(start_permits->limit()) +
                                ") servers are being started, and none was ready in time",
                            timeout);
    }
    attempt->requeue = std::stop_source();
  }
}

Task<void> Starter::run(std::shared_ptr<ManagedUpstream> self) {
  Starter& starter = self->starter;
  const Clock::time_point deadline = Clock::now() + self->spec().clocks.queue;
  while (true) {
    const Clock::time_point now = Clock::now();
    const Action action = self->lifecycle.supervisor().action_if_start_requested(now);
    if (action == Action::start) break;
    if (action == Action::none) co_return starter.finish(std::nullopt);
    if (action == Action::refuse) co_return starter.finish(starter.refusal_error());
    if (now >= deadline) co_return starter.finish(starter.queue_timeout_error());
    Event transition = self->lifecycle.next_transition();
    static_cast<void>(co_await transition.wait(self->core->loop, deadline - now));
  }
  Semaphore::Permit process_permit;
  if (self->spec().is_process()) {
    Result<Semaphore::Permit> acquired =
        co_await self->core->acquire_process_permit(deadline - Clock::now(), starter.attempt_->priority);
    if (!acquired) co_return starter.on_no_permit(acquired.error());
    process_permit = std::move(*acquired);
  }
  ConnectionReservation reservation(std::move(process_permit), self->core);
  Semaphore::Permit start_permit;
  if (self->spec().is_process()) {
    Result<Semaphore::Permit> acquired = co_await acquire_start_permit(self, starter.attempt_, deadline);
    if (!acquired) {
      { const ConnectionReservation released = std::move(reservation); }
      const bool no_permit = acquired.error().kind() == ErrorKind::resource_exhausted;
      co_return no_permit ? starter.on_no_permit(acquired.error()) : starter.finish(acquired.error());
    }
    start_permit = std::move(*acquired);
  }
  if (self->lifecycle.dispatch(Supervisor::Event::start_requested) != Action::start)
    co_return starter.finish(starter.refusal_error());
  starter.start_permit_ = std::move(start_permit);
  self->core->loop.spawn(ConnectionOpener::open(self, std::move(reservation), self->generation()));
}

// A server with `keep_running` is started again later, because there may be no further call to start it.
void Starter::on_no_permit(const Error& error) {
  const ServerSpec& spec = upstream_.spec();
  upstream_.failures.set_last_error(error);
  upstream_.core->log().warning("server failed to start",
                                {{"server", spec.name}, {"reason", error.message()}});
  finish(error);
  if (spec.keep_running) upstream_.lifecycle.start_after(kPermitRetryDelay);
}

}  // namespace fairlead::pool
