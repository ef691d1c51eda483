#include "transport/ticker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "support/turns.hpp"

namespace fairlead::transport {
namespace {

class CountsTicks final : public Ticked {
 public:
  explicit CountsTicks(std::size_t& ticks) : ticks_(ticks) {}
  void tick(Clock::time_point) override { ++ticks_; }

 private:
  std::size_t& ticks_;
};

// Those that share a slot are due at the same time.
TEST(TickerTest, ManyThatAreDueTogetherAreTickedInSlices) {
  constexpr std::size_t kSlots = 16;
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
  std::size_t largest_step = 0;
  loop.block_on(test::watch_fall(
      loop, [&] { return kTogether - std::min(ticks, kTogether); }, largest_step));
  EXPECT_GT(largest_step, 0u);
  EXPECT_LE(largest_step, 2'000u);  // two slices
}

}  // namespace
}  // namespace fairlead::transport
