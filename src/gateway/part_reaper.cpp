#include "gateway/part_reaper.hpp"

#include "fairlead/loop/timer.hpp"
#include "loop/slices.hpp"

namespace fairlead::gateway {

std::shared_ptr<Listed> PartReaper::make_part() {
  const auto release = [weak = weak_from_this()](Listed* released) noexcept {
    std::unique_ptr<Listed> part(released);
    const auto reaper = weak.lock();
    if (reaper) reaper->add(std::move(part));
  };
  return std::shared_ptr<Listed>(std::make_unique<Listed>().release(), release);
}

void PartReaper::add(std::unique_ptr<Listed> part) {
  const bool running = !unused_.empty();
  unused_.push_back(std::move(part));
  if (!running) loop_.spawn(run(shared_from_this()));
}

Task<void> PartReaper::run(std::shared_ptr<PartReaper> self) {
  constexpr std::size_t kSlice = 5000;  // about a millisecond
  while (!self->unused_.empty()) {
    co_await sleep_for(self->loop_, Slices::kPause);
    if (!self->unused_.back()->free_some(kSlice)) self->unused_.pop_back();
  }
}

}  // namespace fairlead::gateway
