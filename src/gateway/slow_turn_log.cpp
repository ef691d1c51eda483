#include "gateway/slow_turn_log.hpp"

#include <string>
#include <utility>

namespace fairlead::gateway {

SlowTurnLog::SlowTurnLog(Loop& loop, Log log) : loop_(loop), log_(std::move(log)) {
  loop_.turn_meter().observe(TurnMeter::kDefaultBudget,
                             [this](const TurnMeter::SlowTurn& turn) { write(turn); });
}

SlowTurnLog::~SlowTurnLog() {
  loop_.turn_meter().observe(TurnMeter::kDefaultBudget, nullptr);
}

void SlowTurnLog::write(const TurnMeter::SlowTurn& turn) {
  ++slow_turn_count_;
  const Clock::time_point now = Clock::now();
  if (now < next_line_at_) return;
  next_line_at_ = now + kMinLineInterval;
  const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(turn.cpu_time);
  log_.warning("slow turn of the loop", {{"ms", std::to_string(spent.count())},
                                         {"activity", std::string(turn.activity)},
                                         {"turns", std::to_string(std::exchange(slow_turn_count_, 0))}});
}

}  // namespace fairlead::gateway
