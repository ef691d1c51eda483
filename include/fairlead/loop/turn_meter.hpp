// TurnMeter: measures for how long single callbacks hold an event loop's thread. A turn is one callback that
// the loop runs, with everything that runs before it returns. While a turn lasts, nothing else on the loop is
// served.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace fairlead {

class TurnMeter {
 public:
  using Duration = std::chrono::nanoseconds;

  // A turn that used more thread CPU time than the budget. `activity` is what label() said last in that turn;
  // empty if nothing did. Valid during the call only.
  struct SlowTurn {
    Duration cpu_time;
    std::string_view activity;
  };
  // Called on the loop thread, after the turn.
  using Observer = std::function<void(const SlowTurn&)>;

  // Turns over `budget` are reported to `observer` and counted. Replaces an earlier observer.
  void observe(Duration budget, Observer observer);

  // Names what the current turn works on, for the report: a connection, a server. Copies up to 120 bytes.
  void label(std::string_view activity) noexcept;

  // The longest turn since the last reset(), in thread CPU time. Turns under kResolution may count as zero,
  // and a longer one may be reported up to kResolution too long.
  Duration longest() const noexcept { return longest_; }
  // Turns over the budget since the loop was made.
  std::uint64_t slow_turns() const noexcept { return slow_turns_; }
  void reset() noexcept { longest_ = {}; }

  // Called by the loop at the start of run() and after every callback.
  void begin() noexcept;
  void end_turn();

  // Reading a thread's CPU time is a system call, so it is read at most once in this time.
  static constexpr Duration kResolution = std::chrono::milliseconds(5);
  static constexpr Duration kDefaultBudget = std::chrono::milliseconds(50);

 private:
  using Clock = std::chrono::steady_clock;

  Duration budget_ = kDefaultBudget;
  Observer observer_;
  Clock::time_point turn_began_;
  Clock::time_point sampled_at_;
  Duration sampled_cpu_{};
  Duration longest_{};
  std::uint64_t slow_turns_ = 0;
  std::array<char, 120> label_;
  std::size_t label_size_ = 0;
};

}  // namespace fairlead
