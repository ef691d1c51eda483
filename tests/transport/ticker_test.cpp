#include "transport/ticker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "support/turns.hpp"

namespace fairlead::transport {
namespace {

constexpr std::size_t kSlots = 16;

class CountsTicks final : public Ticked {
 public:
  explicit CountsTicks(std::size_t& ticks) : ticks_(ticks) {}
  void tick(Clock::time_point) override { ++ticks_; }

 private:
  std::size_t& ticks_;
};

// Those that share a slot are due at the same time.
TEST(TickerTest, ManyThatAreDueTogetherAreTickedInSlices) {
  constexpr std::size_t kTogether = 2'500;
  Loop loop;
  Ticker ticker(loop, std::chrono::milliseconds(16));
  std::size_t ticks = 0;
  std::vector<std::unique_ptr<CountsTicks>> kept;
  for (std::size_t i = 0; i < kTogether * kSlots; ++i) {
    auto one = std::make_unique<CountsTicks>(ticks);
    ticker.add(*one);
    if (i % kSlots == 0) kept.push_back(std::move(one));
  }
  test::FallWatch watch([&] { return kTogether - std::min(ticks, kTogether); });
  loop.post([&] { watch.begin(loop); });
  loop.run_until([&] { return watch.over(); });
  EXPECT_GT(watch.largest_step(), 0u);
  EXPECT_LE(watch.largest_step(), 2'000u);  // two slices
}

// The rest of a slot may end between two parts of it.
TEST(TickerTest, NoneIsTickedTwiceInAPeriodWhenTheRestOfItsSlotEnds) {
  Loop loop;
  Ticker ticker(loop, std::chrono::milliseconds(160));
  std::size_t ticks = 0;
  std::size_t ticks_of_next_slot = 0;
  std::vector<std::unique_ptr<CountsTicks>> kept;
  for (std::size_t i = 0; i < 1'500 * kSlots; ++i) {
    auto one = std::make_unique<CountsTicks>(i == 1 ? ticks_of_next_slot : ticks);
    ticker.add(*one);
    if (i % kSlots == 0 || i == 1) kept.push_back(std::move(one));
  }
  loop.run_until([&] { return ticks > 0; });
  ASSERT_EQ(ticks, 1'000u);
  kept.resize(1'001);
  loop.run_until([&] { return ticks_of_next_slot > 0; });
  EXPECT_EQ(ticks, 1'000u);
}

}  // namespace
}  // namespace fairlead::transport
