#include "mcp/pending_changes.hpp"

#include <utility>

namespace fairlead::mcp {

bool PendingChanges::add(ListKind kind) {
  const std::lock_guard lock(mutex_);
  return !std::exchange(lists_.at(static_cast<std::size_t>(kind)), true);
}

// Charges the URI twice: one copy is stored in uris_, another one in the callback that the caller posts.
bool PendingChanges::add(const std::string& uri, const PostedBytes& posted, const Log& log) {
  const std::lock_guard lock(mutex_);
  if (uris_.contains(uri)) return false;
  Result<PostedBytes::Charge> charge = posted.charge(2 * uri.size());
  if (!charge) {
    log.debug(
        "notification not sent",
        {{"method", "notifications/resources/updated"}, {"uri", uri}, {"reason", charge.error().message()}});
    return false;
  }
  uris_.emplace(uri, std::move(*charge));
  return true;
}

void PendingChanges::remove(ListKind kind) {
  const std::lock_guard lock(mutex_);
  lists_.at(static_cast<std::size_t>(kind)) = false;
}

void PendingChanges::remove(const std::string& uri) {
  const std::lock_guard lock(mutex_);
  uris_.erase(uri);
}

}  // namespace fairlead::mcp
