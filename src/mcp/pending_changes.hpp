// PendingChanges: the changed lists and updated resources of which a client has not been notified yet,
// because the notification waits for a turn of the client's loop. A change that occurs again meanwhile is not
// added twice. Private to the layer.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

#include "fairlead/base/log.hpp"
#include "fairlead/loop/posted_bytes.hpp"
#include "mcp/catalogue.hpp"

namespace fairlead::mcp {

// Thread-safe.
class PendingChanges {
 public:
  // Returns whether the change was added. The caller then posts a callback, which calls remove() before it
  // notifies the client.
  bool add(ListKind kind);
  // The same for an updated resource. The URI is charged to `posted` while the change is pending. If the
  // charge fails, the change is dropped and logged, and false is returned.
  bool add(const std::string& uri, const PostedBytes& posted, const Log& log);

  void remove(ListKind kind);
  void remove(const std::string& uri);

 private:
  std::mutex mutex_;
  std::array<bool, 4> lists_{};  // by ListKind: whether the change is pending
  std::map<std::string, PostedBytes::Charge> uris_;
};

}  // namespace fairlead::mcp
