#include "gateway/server_entry.hpp"

#include <utility>

namespace fairlead::gateway {

std::shared_ptr<const Listed> ServerEntry::own_lists(std::string_view session, std::string_view user) const {
  const auto found = own.find(per_user() ? user : session);
  return found == own.end() ? nullptr : found->second->listed;
}

bool ServerEntry::unlisted(Kind kind) const {
  return !listing.attempted || listing.failure || listing.errors[static_cast<std::size_t>(kind)];
}

void ServerEntry::call_waiters() {
  for (const auto& waiter : std::exchange(listing.waiters, {})) waiter->call();
}

void ServerEntry::stop_listing() {
  call_waiters();
  shared.lease.reset();
  listing.retry.reset();
  for (const auto& [key, cache] : own) cache->lease.reset();
}

}  // namespace fairlead::gateway
