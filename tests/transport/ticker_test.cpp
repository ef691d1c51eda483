#include "transport/ticker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "support/turns.hpp"

namespace fairlead::transport {
namespace {

constexpr std::size_t kSlotCount = 16;

class TickCounter final : public TickListener {
 public:
  explicit TickCounter(std::size_t& ticks) : ticks_(ticks) {}
  void on_tick(Clock::time_point) override { ++ticks_; }

 private:
  std::size_t& ticks_;
};

// All listeners of a slot are due at the same time.
TEST(TickerTest, ManyListenersOfOneSlotAreTickedInSlices) {
  constexpr std::size_t kListenersPerSlot = 2'500;
  Loop loop;
  Ticker ticker(loop, std::chrono::milliseconds(16));
  std::size_t ticks = 0;
  std::vector<std::unique_ptr<TickCounter>> counters;
  for (std::size_t i = 0; i < kListenersPerSlot * kSlotCount; ++i) {
    auto counter = std::make_unique<TickCounter>(ticks);
    ticker.add(*counter);
    if (i % kSlotCount == 0) counters.push_back(std::move(counter));
  }
  test::DrainMonitor monitor([&] { return kListenersPerSlot - std::min(ticks, kListenersPerSlot); });
  loop.post([&] { monitor.start(loop); });
  loop.run_until([&] { return monitor.done(); });
  EXPECT_GT(monitor.largest_step(), 0u);
  EXPECT_LE(monitor.largest_step(), 2'000u);  // two slices
}

// Some listeners of a slot are destroyed between two slices of that slot.
TEST(TickerTest, NoListenerIsTickedTwicePerPeriodWhenOthersOfItsSlotAreDestroyed) {
  Loop loop;
  Ticker ticker(loop, std::chrono::milliseconds(160));
  std::size_t ticks = 0;
  std::size_t ticks_of_next_slot = 0;
  std::vector<std::unique_ptr<TickCounter>> counters;
  for (std::size_t i = 0; i < 1'500 * kSlotCount; ++i) {
    auto counter = std::make_unique<TickCounter>(i == 1 ? ticks_of_next_slot : ticks);
    ticker.add(*counter);
    if (i % kSlotCount == 0 || i == 1) counters.push_back(std::move(counter));
  }
  loop.run_until([&] { return ticks > 0; });
  ASSERT_EQ(ticks, 1'000u);
  counters.resize(1'001);
  loop.run_until([&] { return ticks_of_next_slot > 0; });
  EXPECT_EQ(ticks, 1'000u);
}

}  // namespace
}  // namespace fairlead::transport
