// TurnMeter: measures how long single callbacks occupy the loop thread. A turn is one callback that the loop
// runs, including everything that runs before the callback returns. The loop serves nothing else during a
// turn.
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

  // A turn that used more thread CPU time than the budget. `activity` is the last label() of that turn; empty
  // if label() was not called. The text is valid only while the observer runs.
  struct SlowTurn {
    Duration cpu_time;
    std::string_view activity;
  };
  // Called on the loop thread, after the turn.
  using Observer = std::function<void(const SlowTurn&)>;

  // Reports turns over `budget` to `observer` and counts them. Replaces an earlier observer.
  void observe(Duration budget, Observer observer);

  // Sets the activity of the current turn for the report, such as the name of a connection or a server.
  // Copies up to 120 bytes.
  void label(std::string_view activity) noexcept;

  // Returns the longest turn since the last reset(), in thread CPU time. A turn under kResolution may count
  // as zero, and a longer one may be reported up to kResolution too long.
  Duration longest_turn() const noexcept { return longest_turn_; }
  // Returns the number of turns over the budget since the loop was created.
  std::uint64_t slow_turn_count() const noexcept { return slow_turn_count_; }
  // Resets longest_turn().
  void reset() noexcept { longest_turn_ = {}; }

  using Clock = std::chrono::steady_clock;
  // Called by the loop: begin_first_turn() when it starts to run, end_turn() after every callback.
  void begin_first_turn(Clock::time_point now) noexcept;
  void end_turn(Clock::time_point now);

  // Reading a thread's CPU time is a system call, so it is read at most once per this interval.
  static constexpr Duration kResolution = std::chrono::milliseconds(5);
  static constexpr Duration kDefaultBudget = std::chrono::milliseconds(50);

 private:
  Duration budget_ = kDefaultBudget;
  Observer observer_;
  Clock::time_point turn_began_;
  Clock::time_point sampled_at_;  // when the thread's CPU time was read last
  Duration sampled_cpu_{};        // and what it was then
  Duration longest_turn_{};
  std::uint64_t slow_turn_count_ = 0;
  std::array<char, 120> label_;
  std::size_t label_size_ = 0;
};

}  // namespace fairlead
