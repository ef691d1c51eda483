#include "gateway/ended_sessions.hpp"

#include <utility>

#include "base/extract_keys.hpp"
#include "fairlead/loop/timer.hpp"
#include "loop/slices.hpp"

namespace fairlead::gateway {

void EndedSessions::add(std::string_view session) {
  pending_.emplace(session);
  if (!std::exchange(releasing_, true)) schedule_release();
}

void EndedSessions::schedule_release() {
  loop_.post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->loop_.spawn(release_all(self));
  });
}

Task<void> EndedSessions::release_all(std::shared_ptr<EndedSessions> self) {
  const Sessions sessions = std::exchange(self->pending_, {});
  co_await self->remove_lists(sessions);
  self->catalogue_->drop_views();
  co_await self->pool_->end_sessions(sessions);
  self->releasing_ = !self->pending_.empty();
  if (self->releasing_) self->schedule_release();
}

Task<void> EndedSessions::remove_lists(const Sessions& sessions) {
  Slices slices;
  const std::vector<ServerTable::EntryPtr> entries = servers_->all();
  for (const ServerTable::EntryPtr& entry : entries) {
    if (!entry->per_user()) extract_keys(entry->unshared, sessions);
    if (slices.due(0)) co_await sleep_for(loop_, Slices::kPause);
  }
}

}  // namespace fairlead::gateway
