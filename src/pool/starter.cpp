#include "pool/starter.hpp"

#include "fairlead/process/failure.hpp"
#include "pool/upstream.hpp"

namespace fairlead::pool {

namespace {

// Between two waits for a place among max_stdio_processes.
constexpr std::chrono::seconds kPlaceAgain{1};

}  // namespace

// ---- waiting ---------------------------------------------------------------------------------------------

Task<Result<void>> Starter::become_ready(std::stop_token stop, StartPriority priority, std::string client) {
  const auto self = upstream_.shared_from_this();
  Core& core = *upstream_.core;
  if (upstream_.lifecycle.outlook() == Action::refuse) co_return refusal();
  const Result<WaitingCalls::Counted> counted = core.waiting_calls.add(client, upstream_.spec().clocks.queue);
  if (!counted) co_return counted.error();
  const auto waiter = std::make_shared<Waiter>(core.loop);
  const bool first = !attempt_;
  if (first) attempt_ = std::make_shared<Attempt>();
  const std::shared_ptr<Attempt> attempt = attempt_;
  attempt->waiting.push_back(waiter);
  if (priority == StartPriority::call && std::exchange(attempt->priority, priority) != StartPriority::call &&
      attempt->queued)
    attempt->requeue.request_stop();
  if (first) core.loop.spawn(run(self));
  Task<bool> waiting = Waiter::wait(waiter, Clock::duration::max(), stop);
  const bool called = co_await waiting;
  if (!called) {
    attempt->waiting.remove(waiter);
    if (attempt->queued && !wanted(*attempt)) attempt->requeue.request_stop();
    co_return with_failure_code(
        Error(ErrorKind::cancelled, "given up while server " + upstream_.spec().name + " was being started"));
  }
  if (attempt->error) co_return *attempt->error;
  co_return Result<void>();
}

void Starter::begin() {
  if (attempt_ || upstream_.ready()) return;
  attempt_ = std::make_shared<Attempt>();
  upstream_.core->loop.spawn(run(upstream_.shared_from_this()));
}

void Starter::finish(std::optional<Error> error) {
  release_slot();
  const std::shared_ptr<Attempt> attempt = std::exchange(attempt_, nullptr);
  if (!attempt) return;
  attempt->error = std::move(error);
  for (const auto& waiter : attempt->waiting) waiter->call();
  if (upstream_.at_rest()) upstream_.settle_soon();
}

void Starter::leave_queue() {
  if (attempt_ && attempt_->queued) attempt_->requeue.request_stop();
}

Error Starter::refusal() const {
  const std::string& server = upstream_.spec().name;
  if (upstream_.state() != State::crash_loop) {
    return with_failure_code(Error(ErrorKind::connection_failed, "server " + server + " is stopped"),
                             failure::server_stopped);
  }
  const Supervisor& supervisor = upstream_.lifecycle.supervisor();
  const Error& last = *upstream_.failures.last_error();
  const Clock::duration left = supervisor.retry_at() - Clock::now();
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(left).count();
  Error told(last.kind(), "server " + server + " has failed " + std::to_string(supervisor.failures()) +
                              " times in a row and is not tried for another " + std::to_string(seconds) +
                              " s: " + last.message());
  return with_retry(std::move(told).with([&](ErrorDetail& d) { d = last.detail(); }), left);
}

// The queue's clock has run out, with the server backing off, or the process before it still not gone.
Error Starter::still_waiting() const {
  const std::optional<Error>& last = upstream_.failures.last_error();
  const std::string what =
      upstream_.state() == State::backing_off ? "to be tried again" : "for the end of its last process";
  Error told(ErrorKind::timeout, "server " + upstream_.spec().name + " waits " + what +
                                     (last ? ", after: " + last->message() : std::string()));
  if (last) told = std::move(told).with([&](ErrorDetail& d) { d = last->detail(); });
  const Clock::duration left = upstream_.lifecycle.supervisor().retry_at() - Clock::now();
  return with_retry(with_failure_code(std::move(told)),
                    std::max<Clock::duration>(left, std::chrono::seconds(1)));
}

bool Starter::wanted(const Attempt& attempt) const noexcept {
  return upstream_.spec().keep_running || !attempt.waiting.empty();
}

// Starts that a call waits for go first, and wait until `latest` at most. A start that no call waits for
// any more leaves the queue: kind cancelled. Otherwise kind resource_exhausted, or that of refusal().
Task<Result<Gate::Pass>> Starter::wait_for_slot(std::shared_ptr<ManagedUpstream> self,
                                                std::shared_ptr<Attempt> attempt, Clock::time_point latest) {
  const Starter& starter = self->starter;
  const std::shared_ptr<Gate> starts = self->core->starts;
  while (true) {
    if (self->lifecycle.outlook() == Action::refuse) co_return starter.refusal();
    const bool urgent = attempt->priority == StartPriority::call;
    const Clock::duration patience = std::max(latest - Clock::now(), Clock::duration::zero());
    const std::stop_token requeued = attempt->requeue.get_token();
    attempt->queued = true;
    Task<Gate::Pass> entering = starts->enter(urgent ? patience : Clock::duration::max(), requeued, urgent);
    Gate::Pass slot = co_await entering;
    attempt->queued = false;
    if (slot) co_return slot;
    if (!starter.wanted(*attempt)) {
      co_return with_failure_code(
          Error(ErrorKind::cancelled, "no call waits for server " + self->spec().name + " any more"));
    }
    if (!requeued.stop_requested()) {
      co_return limit_reached("max_concurrent_starts (" + std::to_string(starts->limit()) +
                                  ") servers are being started, and none was ready in time",
                              patience);
    }
    attempt->requeue = std::stop_source();
  }
}

// Waits until it may start and has a place, then starts it. The outcome is told by whatever ends the start.
Task<void> Starter::run(std::shared_ptr<ManagedUpstream> self) {
  Starter& starter = self->starter;
  const Clock::time_point latest = Clock::now() + self->spec().clocks.queue;
  while (true) {
    const Clock::time_point now = Clock::now();
    const Action outlook = self->lifecycle.supervisor().outlook(now);
    if (outlook == Action::start) break;
    if (outlook == Action::none) co_return starter.finish(std::nullopt);
    if (outlook == Action::refuse) co_return starter.finish(starter.refusal());
    if (now >= latest) co_return starter.finish(starter.still_waiting());
    Event changed = self->lifecycle.next_change();
    const bool woken = co_await changed.wait(self->core->loop, latest - now);
    static_cast<void>(woken);
  }
  Gate::Pass pass;
  if (self->spec().is_process()) {
    Task<Result<Gate::Pass>> entering =
        self->core->enter_process(latest - Clock::now(), starter.attempt_->priority);
    Result<Gate::Pass> entered = co_await entering;
    if (!entered) co_return starter.on_no_place(entered.error());
    pass = std::move(*entered);
  }
  Place place(std::move(pass), self->core);
  Gate::Pass slot;
  if (self->spec().is_process()) {
    Task<Result<Gate::Pass>> queueing = wait_for_slot(self, starter.attempt_, latest);
    Result<Gate::Pass> entered = co_await queueing;
    if (!entered) {
      { const Place left = std::move(place); }
      const bool no_slot = entered.error().kind() == ErrorKind::resource_exhausted;
      co_return no_slot ? starter.on_no_place(entered.error()) : starter.finish(entered.error());
    }
    slot = std::move(*entered);
  }
  if (self->lifecycle.tell(Supervisor::Event::wanted) != Action::start)
    co_return starter.finish(starter.refusal());
  starter.slot_ = std::move(slot);
  self->core->loop.spawn(ConnectionOpener::bring_up(self, std::move(place), self->generation()));
}

// A server that is kept running may get no further call that would start it: it is tried again later.
void Starter::on_no_place(const Error& error) {
  const ServerSpec& spec = upstream_.spec();
  upstream_.failures.set_last_error(error);
  upstream_.core->log().warning("server does not start",
                                {{"server", spec.name}, {"reason", error.message()}});
  finish(error);
  if (spec.keep_running) upstream_.lifecycle.start_after(kPlaceAgain);
}

}  // namespace fairlead::pool
