#include "gateway/health_reporter.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "fairlead/loop/timer.hpp"
#include "loop/slices.hpp"

namespace fairlead::gateway {

bool HealthReporter::PendingReport::has_live_requests() const {
  return !std::ranges::all_of(stop_tokens, [](const std::stop_token& stop) { return stop.stop_requested(); });
}

namespace {

// Returns a text that is the same for all tokens of a user with these scopes.
std::string scopes_text(const Principal& reader) {
  std::string text = "\n" + reader.issuer + "\n" + reader.user;
  for (const std::string& scope : reader.scopes) text += "\n" + scope;
  return text;
}

}  // namespace

Task<Result<HealthPtr>> HealthReporter::request(bool with_details, PrincipalPtr reader,
                                                HealthReportBuilder::ServerFilter filter,
                                                std::stop_token stop) {
  const auto keep = shared_from_this();
  const bool admin = reader->has_role(kAdminRole);
  ReportKey key(with_details, admin ? std::string(kAdminRole) : servers_->visibility_class(*reader));
  if (filter) key.second += scopes_text(*reader);
  std::shared_ptr<PendingReport>& requested = requested_[key];
  const bool joined = requested != nullptr;
  if (!joined) requested = std::make_shared<PendingReport>();
  const std::shared_ptr<PendingReport> pending = requested;
  if (!joined) pending->reader = std::move(reader);
  if (!joined) pending->filter = std::move(filter);
  pending->stop_tokens.push_back(std::move(stop));
  if (!joined) loop_.spawn(build_next(keep, std::move(key)));
  co_await pending->done.wait(loop_);
  co_return pending->outcome;
}

Task<void> HealthReporter::build_next(std::shared_ptr<HealthReporter> self, ReportKey key) {
  while (!self->idle_.is_set()) {
    co_await self->idle_.wait(self->loop_);
  }
  self->idle_.reset();
  const std::shared_ptr<PendingReport> pending = std::move(self->requested_.extract(key).mapped());
  co_await self->build(*pending, key.first);
  pending->done.set();
  self->idle_.set();
}

Task<void> HealthReporter::build(PendingReport& pending, bool with_details) const {
  HealthReportBuilder builder(*pool_, *servers_,
                              HealthReportBuilder::Reader{with_details, pending.reader, pending.filter});
  while (pending.has_live_requests()) {
    if (!add_slice(builder, pending)) co_return;
    co_await sleep_for(loop_, Slices::kPause);
  }
}

// If there is not enough memory only this report fails; later requests get a new report.
bool HealthReporter::add_slice(HealthReportBuilder& builder, PendingReport& pending) const {
  try {
    if (builder.add_slice()) return true;
    pending.outcome = std::make_shared<const Health>(std::move(builder).finish(gateway_stats()));
  } catch (const std::bad_alloc&) {
    pending.outcome = Error(ErrorKind::resource_exhausted, "out of memory");
  }
  return false;
}

Health HealthReporter::build_now(bool with_details) const {
  HealthReportBuilder builder(*pool_, *servers_, HealthReportBuilder::Reader{with_details, nullptr, nullptr});
  while (builder.add_slice()) {
  }
  return std::move(builder).finish(gateway_stats());
}

GatewayStats HealthReporter::gateway_stats() const {
  GatewayStats stats;
  stats.session_count = sessions_->size();
  stats.uptime = Clock::now() - started_at_;
  stats.gateway_draining = draining_;
  stats.longest_turn = loop_.turn_meter().longest_turn();
  stats.slow_turn_count = loop_.turn_meter().slow_turn_count();
  return stats;
}

}  // namespace fairlead::gateway
