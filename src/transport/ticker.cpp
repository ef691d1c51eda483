#include "transport/ticker.hpp"

#include <algorithm>
#include <utility>

namespace fairlead::transport {

namespace {

constexpr std::chrono::milliseconds kPause{1};  // between two parts of a slot

}  // namespace

Ticker::Ticker(Loop& loop, std::chrono::milliseconds period)
    : timer_(loop), step_(std::max(period / static_cast<int>(kSlots), std::chrono::milliseconds(1))) {}

void Ticker::add(Ticked& one) {
  if (one.is_linked()) return;
  slots_[next_++ % kSlots].push_back(one);
  if (!timer_.armed()) arm();
}

void Ticker::arm() {
  timer_.arm_after(step_, [this] { turn(); });
}

void Ticker::turn() {
  List& slot = slots_[now_ % kSlots];
  if (!std::exchange(in_slot_, true)) due_.swap(slot);
  for (std::size_t ticked = 0; ticked < kTickedPerTurn && !due_.empty(); ++ticked) {
    // Back in its place first: what a tick does may take it, or any other, away for good.
    Ticked& one = due_.front();
    due_.pop_front();
    slot.push_back(one);
    one.tick(Clock::now());
  }
  if (!due_.empty()) return timer_.arm_after(kPause, [this] { turn(); });
  in_slot_ = false;
  ++now_;
  const bool any = std::ranges::any_of(slots_, [](const List& list) { return !list.empty(); });
  if (any) arm();
}

}  // namespace fairlead::transport
