#include "mcp/pending_changes.hpp"

#include <utility>

namespace fairlead::mcp {

bool PendingChanges::add(ListKind kind) {
  const std::lock_guard lock(mutex_);
  return lists_.insert(kind).second;
}

// It is kept here and in the callback.
bool PendingChanges::add(const std::string& uri, const PostedBytes& posted) {
  const std::lock_guard lock(mutex_);
  if (uris_.contains(uri)) return false;
  Result<PostedBytes::Charge> charge = posted.charge(2 * uri.size());
  if (!charge) return false;
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
