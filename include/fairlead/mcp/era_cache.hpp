// EraCache: stores which servers are legacy, so that clients do not probe them at every connection. Clients
// may share an instance. Thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace fairlead::mcp {

// An entry is ignored when it is older than `max_age`, and erased when the version of the server changes and
// after a failed handshake. The next connection then probes the server again.
class EraCache {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::size_t kMaxEntries = 10'000;  // further servers are probed at every connection
  static constexpr std::chrono::hours kMaxAge{24};

  // `now` is for tests.
  explicit EraCache(std::chrono::milliseconds max_age = kMaxAge,
                    std::function<Time()> now = std::chrono::steady_clock::now)
      : max_age_(max_age), now_(std::move(now)) {}

  // `server` is the key of a server, see ClientOptions::era_key.
  bool is_legacy(const std::string& server) const;
  // Stores that a probe has found the server to be legacy.
  // `server_version` is the name and the version that the server declared.
  void store_legacy(const std::string& server, std::string server_version);
  // Called when the server has accepted a legacy handshake without a probe. Erases the entry if
  // `server_version` differs from the stored one, so that the next connection probes the server again.
  void erase_if_version_changed(const std::string& server, std::string_view server_version);
  void erase(const std::string& server);

 private:
  struct Entry {
    std::string server_version;
    Time probed_at;
  };

  const std::chrono::milliseconds max_age_;
  const std::function<Time()> now_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace fairlead::mcp
