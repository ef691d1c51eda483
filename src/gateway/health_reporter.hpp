// HealthReporter: builds the reports for /health in slices, one report at a time. Requests that arrive while
// a report is built share the next report, so many requests cause no more work than a few. Private to the
// layer.
#pragma once

#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "fairlead/loop/event.hpp"
#include "gateway/health_report_builder.hpp"
#include "gateway/session_table.hpp"

namespace fairlead::gateway {

class HealthReporter : public std::enable_shared_from_this<HealthReporter> {
 public:
  HealthReporter(Loop& loop, std::shared_ptr<const pool::Pool> pool,
                 std::shared_ptr<const ServerTable> servers, std::shared_ptr<const SessionTable> sessions)
      : loop_(loop), pool_(std::move(pool)), servers_(std::move(servers)), sessions_(std::move(sessions)) {
    idle_.set();
  }

  // Returns a report that describes the state after this call began. Fails with `cancelled` if stop is
  // requested, before the report is complete, on the tokens of all requests that share it. Fails with
  // `resource_exhausted` if there is not enough memory for the report. The report has the servers that are
  // visible to `reader`, and for which `filter` returns true if it is not null. REQUIRES: the filter depends
  // on the user and the scopes of `reader` only.
  Task<Result<HealthPtr>> request(bool with_details, PrincipalPtr reader,
                                  HealthReportBuilder::ServerFilter filter, std::stop_token stop);
  // Returns a report that is built in one turn, independently of the requested ones.
  Health build_now(bool with_details) const;
  // Subsequent reports have the status `draining`.
  void set_draining() noexcept { draining_ = true; }

 private:
  // A report that is requested or being built, and the requests that share it.
  struct PendingReport {
    PrincipalPtr reader;                       // of the first request; the others see the same servers
    HealthReportBuilder::ServerFilter filter;  // the same
    std::vector<std::stop_token> stop_tokens;  // of the requests
    Result<HealthPtr> outcome = Error(ErrorKind::cancelled, "all requests for the report were cancelled");
    Event done;

    bool has_live_requests() const;  // some request is not cancelled
  };

  // With or without details, and the class of readers that see the same servers.
  using ReportKey = std::pair<bool, std::string>;

  // Waits until no report is being built, then builds the requested one.
  static Task<void> build_next(std::shared_ptr<HealthReporter> self, ReportKey key);
  Task<void> build(PendingReport& pending, bool with_details) const;
  // Adds a slice to the report of `builder`. Returns false when the report has succeeded or failed; then
  // `pending.outcome` is set.
  bool add_slice(HealthReportBuilder& builder, PendingReport& pending) const;
  GatewayStats gateway_stats() const;

  Loop& loop_;
  std::shared_ptr<const pool::Pool> pool_;
  std::shared_ptr<const ServerTable> servers_;
  std::shared_ptr<const SessionTable> sessions_;
  const Clock::time_point started_at_ = Clock::now();
  bool draining_ = false;
  Event idle_;  // set while no report is being built
  std::map<ReportKey, std::shared_ptr<PendingReport>> requested_;
};

}  // namespace fairlead::gateway
