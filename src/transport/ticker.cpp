#include "transport/ticker.hpp"

#include <algorithm>
#include <utility>

namespace fairlead::transport {

namespace {

constexpr std::chrono::milliseconds kPauseBetweenSlices{1};

}  // namespace

Ticker::Ticker(Loop& loop, std::chrono::milliseconds period)
    : timer_(loop), step_(std::max(period / static_cast<int>(kSlotCount), std::chrono::milliseconds(1))) {}

void Ticker::add(TickListener& listener) {
  if (listener.is_linked()) return;
  slots_[next_slot_++ % kSlotCount].push_back(listener);
  if (!timer_.armed()) arm();
}

void Ticker::arm() {
  timer_.arm_after(step_, [this] { tick_slot(); });
}

void Ticker::tick_slot() {
  List& slot = slots_[current_slot_ % kSlotCount];
  if (!std::exchange(slot_started_, true)) due_listeners_.swap(slot);
  for (std::size_t ticked = 0; ticked < kTicksPerTurn && !due_listeners_.empty(); ++ticked) {
    // The listener is inserted again before the call, because on_tick() may destroy this listener or any
    // other.
    TickListener& listener = due_listeners_.front();
    due_listeners_.pop_front();
    slot.push_back(listener);
    listener.on_tick(Clock::now());
  }
  if (!due_listeners_.empty()) return timer_.arm_after(kPauseBetweenSlices, [this] { tick_slot(); });
  slot_started_ = false;
  ++current_slot_;
  const bool has_listeners = std::ranges::any_of(slots_, [](const List& list) { return !list.empty(); });
  if (has_listeners) arm();
}

}  // namespace fairlead::transport
