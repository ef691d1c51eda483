// SlowTurnLog: log lines about turns of the loop that took too long. While a turn lasts no client is served.
// Private to the layer.
#pragma once

#include <cstdint>

#include "fairlead/base/log.hpp"
#include "fairlead/loop/loop.hpp"

namespace fairlead::gateway {

// Observes the loop's turns for as long as it lives. At most one line in kInterval; the turns in between are
// counted.
class SlowTurnLog {
 public:
  static constexpr std::chrono::seconds kInterval{10};

  SlowTurnLog(Loop& loop, Log log);
  ~SlowTurnLog();
  SlowTurnLog(const SlowTurnLog&) = delete;
  SlowTurnLog& operator=(const SlowTurnLog&) = delete;

 private:
  void write(const TurnMeter::SlowTurn& turn);

  Loop& loop_;
  Log log_;
  Clock::time_point next_line_{};
  std::uint64_t turns_ = 0;  // since the last line
};

}  // namespace fairlead::gateway
