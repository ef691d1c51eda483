#include "gateway/list_reclaimer.hpp"

#include "fairlead/loop/timer.hpp"
#include "loop/slices.hpp"

namespace fairlead::gateway {

std::shared_ptr<ServerLists> ListReclaimer::make_lists() {
  const auto release = [weak = weak_from_this()](ServerLists* released) noexcept {
    std::unique_ptr<ServerLists> lists(released);
    const auto reclaimer = weak.lock();
    if (reclaimer) reclaimer->add(std::move(lists));
  };
  return std::shared_ptr<ServerLists>(std::make_unique<ServerLists>().release(), release);
}

void ListReclaimer::add(std::unique_ptr<ServerLists> lists) {
  const bool running = !unused_.empty();
  unused_.push_back(std::move(lists));
  if (!running) loop_.spawn(free_unused(shared_from_this()));
}

Task<void> ListReclaimer::free_unused(std::shared_ptr<ListReclaimer> self) {
  constexpr std::size_t kEntriesPerSlice = 5000;  // entries, freed in about a millisecond
  while (!self->unused_.empty()) {
    co_await sleep_for(self->loop_, Slices::kPause);
    if (!self->unused_.back()->free_some(kEntriesPerSlice)) self->unused_.pop_back();
  }
}

}  // namespace fairlead::gateway
