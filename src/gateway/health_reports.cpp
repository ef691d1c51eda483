#include "gateway/health_reports.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "fairlead/loop/timer.hpp"
#include "loop/slices.hpp"

namespace fairlead::gateway {

bool HealthReports::Pending::wanted() const {
  return !std::ranges::all_of(readers, [](const std::stop_token& stop) { return stop.stop_requested(); });
}

Task<Result<HealthPtr>> HealthReports::make(bool details, std::stop_token stop) {
  const auto keep = shared_from_this();
  std::shared_ptr<Pending> pending = waiting_[details ? 1 : 0];
  const bool joins = pending != nullptr;
  if (!joins) pending = waiting_[details ? 1 : 0] = std::make_shared<Pending>();
  pending->readers.push_back(std::move(stop));
  if (!joins) loop_.spawn(run(keep, details));
  const bool done = co_await pending->done.wait(loop_, Clock::duration::max());
  static_cast<void>(done);
  co_return pending->outcome;
}

Task<void> HealthReports::run(std::shared_ptr<HealthReports> self, bool details) {
  while (!self->idle_.is_set()) {
    const bool idle = co_await self->idle_.wait(self->loop_, Clock::duration::max());
    static_cast<void>(idle);
  }
  self->idle_.reset();
  const std::shared_ptr<Pending> pending = std::exchange(self->waiting_[details ? 1 : 0], nullptr);
  Task<void> making = self->make_in_slices(*pending, details);
  co_await making;
  pending->done.set();
  self->idle_.set();
}

Task<void> HealthReports::make_in_slices(Pending& pending, bool details) const {
  HealthReport report(*pool_, *servers_, details);
  while (pending.wanted()) {
    if (!add_slice(report, pending)) co_return;
    co_await sleep_for(loop_, Slices::kPause);
  }
}

// Without memory the report fails, and those that follow are made.
bool HealthReports::add_slice(HealthReport& report, Pending& pending) const {
  try {
    if (report.add_slice()) return true;
    pending.outcome = std::make_shared<const Health>(std::move(report).finish(figures()));
  } catch (const std::bad_alloc&) {
    pending.outcome = Error(ErrorKind::resource_exhausted, "out of memory");
  }
  return false;
}

Health HealthReports::make_now(bool details) const {
  HealthReport report(*pool_, *servers_, details);
  while (report.add_slice()) {
  }
  return std::move(report).finish(figures());
}

HealthFigures HealthReports::figures() const {
  HealthFigures figures;
  figures.sessions = sessions_->size();
  figures.uptime = Clock::now() - since_;
  figures.stopping = draining_;
  figures.longest_turn = loop_.turns().longest();
  figures.slow_turns = loop_.turns().slow_turns();
  return figures;
}

}  // namespace fairlead::gateway
