// SlowTurnLog: logs turns of the loop that take too long. No client is served during a turn. Private to the
// layer.
#pragma once

#include <cstdint>

#include "fairlead/base/log.hpp"
#include "fairlead/loop/loop.hpp"

namespace fairlead::gateway {

// Observes the turns of the loop from construction to destruction. Writes at most one line per
// kMinLineInterval, with the number of slow turns since the previous line.
class SlowTurnLog {
 public:
  static constexpr std::chrono::seconds kMinLineInterval{10};

  SlowTurnLog(Loop& loop, Log log);
  ~SlowTurnLog();
  SlowTurnLog(const SlowTurnLog&) = delete;
  SlowTurnLog& operator=(const SlowTurnLog&) = delete;

 private:
  void write(const TurnMeter::SlowTurn& turn);

  Loop& loop_;
  Log log_;
  Clock::time_point next_line_at_{};
  std::uint64_t slow_turn_count_ = 0;  // slow turns since the last line
};

}  // namespace fairlead::gateway
