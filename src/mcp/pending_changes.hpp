// PendingChanges: what has changed and waits for the loop on which a client is told of it. What changes again
// before it was told waits once. Private to the layer.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "fairlead/base/log.hpp"
#include "fairlead/loop/posted_bytes.hpp"
#include "mcp/catalogue.hpp"

namespace fairlead::mcp {

// Thread-safe.
class PendingChanges {
 public:
  // Each returns whether the caller has to post a callback, which takes the change before it tells of it.
  bool add(ListKind kind);
  // URIs count against `posted` while they wait. One that does not fit is dropped,
  // with a line in the log.
  bool add(const std::string& uri, const PostedBytes& posted, const Log& log);

  void take(ListKind kind);
  void take(const std::string& uri);

 private:
  std::mutex mutex_;
  std::set<ListKind> lists_;
  std::map<std::string, PostedBytes::Charge> uris_;
};

}  // namespace fairlead::mcp
