// HealthReports: makes the reports that clients ask for, in slices, between which the loop serves others.
// Only one report is made at a time, and requests that wait for it to end share the next one, so many
// requests cause no more work than a few. Private to the layer.
#pragma once

#include <array>
#include <memory>
#include <stop_token>
#include <vector>

#include "fairlead/loop/event.hpp"
#include "gateway/health.hpp"
#include "gateway/session_table.hpp"

namespace fairlead::gateway {

class HealthReports : public std::enable_shared_from_this<HealthReports> {
 public:
  HealthReports(Loop& loop, std::shared_ptr<const pool::Pool> pool,
                std::shared_ptr<const ServerTable> servers, std::shared_ptr<const SessionTable> sessions)
      : loop_(loop), pool_(std::move(pool)), servers_(std::move(servers)), sessions_(std::move(sessions)) {
    idle_.set();
  }

  // A report that begins after the call. Kind cancelled if `stop`, and that of all who wait for the same
  // report, is requested before its end; kind resource_exhausted if there is no memory for it.
  Task<Result<HealthPtr>> make(bool details, std::stop_token stop);
  // The same, in one turn.
  Health make_now(bool details) const;
  // Reports say from now on that the gateway is draining.
  void set_draining() noexcept { draining_ = true; }

 private:
  // A report and the requests that wait for it.
  struct Pending {
    std::vector<std::stop_token> readers;
    Result<HealthPtr> outcome =
        Error(ErrorKind::cancelled, "the clients that asked for the report have gone");
    Event done;

    bool wanted() const;
  };

  static Task<void> run(std::shared_ptr<HealthReports> self, bool details);
  Task<void> make_in_slices(Pending& pending, bool details) const;
  // False when `pending` has its outcome.
  bool add_slice(HealthReport& report, Pending& pending) const;
  HealthFigures figures() const;

  Loop& loop_;
  std::shared_ptr<const pool::Pool> pool_;
  std::shared_ptr<const ServerTable> servers_;
  std::shared_ptr<const SessionTable> sessions_;
  const Clock::time_point since_ = Clock::now();
  bool draining_ = false;
  Event idle_;                                       // set while no report is being made
  std::array<std::shared_ptr<Pending>, 2> waiting_;  // without and with details: not begun yet, or null
};

}  // namespace fairlead::gateway
