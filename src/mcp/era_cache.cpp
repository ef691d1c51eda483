#include "fairlead/mcp/era_cache.hpp"

#include <utility>

namespace fairlead::mcp {

bool EraCache::is_legacy(const std::string& server) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(server);
  return found != entries_.end() && now_() - found->second.probed_at < max_age_;
}

void EraCache::store_legacy(const std::string& server, std::string server_version) {
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= kMaxEntries && !entries_.contains(server)) return;
  entries_.insert_or_assign(server, Entry{std::move(server_version), now_()});
}

void EraCache::erase_if_version_changed(const std::string& server, std::string_view server_version) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(server);
  if (found != entries_.end() && found->second.server_version != server_version) entries_.erase(found);
}

void EraCache::erase(const std::string& server) {
  const std::lock_guard lock(mutex_);
  entries_.erase(server);
}

}  // namespace fairlead::mcp
