#include "gateway/server_entry.hpp"

namespace fairlead::gateway {

std::shared_ptr<const Listed> ServerEntry::own_lists(std::string_view session, std::string_view user) const {
  const auto found = own.find(per_user() ? user : session);
  return found == own.end() ? nullptr : found->second->listed;
}

void ServerEntry::stop_listing() {
  shared.lease.reset();
  listing.retry.reset();
  for (const auto& [key, cache] : own) cache->lease.reset();
}

}  // namespace fairlead::gateway
