#include "transport/ticker.hpp"

#include <algorithm>

namespace fairlead::transport {

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
  List& slot = slots_[now_++ % kSlots];
  List due;
  due.swap(slot);
  // Back in its place first: what a tick does may take it, or any other, away for good.
  while (!due.empty()) {
    Ticked& one = due.front();
    due.pop_front();
    slot.push_back(one);
    one.tick(Clock::now());
  }
  const bool any = std::ranges::any_of(slots_, [](const List& list) { return !list.empty(); });
  if (any) arm();
}

}  // namespace fairlead::transport
