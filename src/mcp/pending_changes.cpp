#include "mcp/pending_changes.hpp"

#include <utility>

namespace fairlead::mcp {

bool PendingChanges::add(ListKind kind) {
  const std::lock_guard lock(mutex_);
  return lists_.insert(kind).second;
}

// It is kept here and in the callback.
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

void PendingChanges::take(ListKind kind) {
  const std::lock_guard lock(mutex_);
  lists_.erase(kind);
}

void PendingChanges::take(const std::string& uri) {
  const std::lock_guard lock(mutex_);
  uris_.erase(uri);
}

}  // namespace fairlead::mcp
