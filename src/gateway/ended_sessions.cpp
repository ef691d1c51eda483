#include "gateway/ended_sessions.hpp"

#include <utility>

#include "base/take_keys.hpp"
#include "fairlead/loop/timer.hpp"
#include "loop/slices.hpp"

namespace fairlead::gateway {

void EndedSessions::add(std::string_view session) {
  added_.emplace(session);
  if (!std::exchange(releasing_, true)) release_soon();
}

void EndedSessions::release_soon() {
  loop_.post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->loop_.spawn(release_all(self));
  });
}

Task<void> EndedSessions::release_all(std::shared_ptr<EndedSessions> self) {
  const Sessions sessions = std::exchange(self->added_, {});
  Task<void> removing = self->remove_lists(sessions);
  co_await removing;
  self->catalogue_->drop_views();
  Task<void> ending = self->pool_->end_sessions(sessions);
  co_await ending;
  self->releasing_ = !self->added_.empty();
  if (self->releasing_) self->release_soon();
}

Task<void> EndedSessions::remove_lists(const Sessions& sessions) {
  Slices slices;
  const std::vector<ServerTable::EntryPtr> entries = servers_->all();
  for (const ServerTable::EntryPtr& entry : entries) {
    if (!entry->per_user()) take_keys(entry->own, sessions);
    if (slices.due(0)) co_await sleep_for(loop_, Slices::kPause);
  }
}

}  // namespace fairlead::gateway
