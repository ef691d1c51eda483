#include "gateway/server_entry.hpp"

#include <utility>

namespace fairlead::gateway {

const ServerPolicyPtr& ServerEntry::default_policy() {
  static const ServerPolicyPtr policy = std::make_shared<const ServerPolicy>();
  return policy;
}

std::shared_ptr<const ServerLists> ServerEntry::unshared_lists(std::string_view session,
                                                               std::string_view user) const {
  if (unshared.empty()) return nullptr;
  const auto found = unshared.find(pool::unshared_upstream_key(spec.sharing, session, user));
  return found == unshared.end() ? nullptr : found->second->lists;
}

bool ServerEntry::may_have_unlisted_entries(ListKind kind) const {
  return !fetch_state.attempted || fetch_state.attempt_error ||
         fetch_state.errors_by_kind[static_cast<std::size_t>(kind)];
}

void ServerEntry::wake_waiters() {
  for (const auto& waiter : std::exchange(fetch_state.waiters, {})) waiter->wake();
}

void ServerEntry::stop_fetching() {
  wake_waiters();
  shared.lease.reset();
  fetch_state.retry_timer.reset();
  for (const auto& [key, cache] : unshared) cache->lease.reset();
}

}  // namespace fairlead::gateway
