// EraCache: remembers which servers speak the legacy era, so that they are not probed at every start. Clients
// may share one. Thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace fairlead::mcp {

// An entry is dropped when it is older than `max_age`, when the version of the server changes, and after a
// failed handshake. The next connection then probes the server again.
class EraCache {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::size_t kMaxEntries = 10'000;  // further servers are probed each time
  static constexpr std::chrono::hours kMaxAge{24};

  // `now` is for tests.
  explicit EraCache(std::chrono::milliseconds max_age = kMaxAge,
                    std::function<Time()> now = std::chrono::steady_clock::now)
      : max_age_(max_age), now_(std::move(now)) {}

  bool is_legacy(const std::string& server) const;
  // A probe has shown that the server is a legacy one.
  void remember(const std::string& server, std::string version);
  // The server has accepted a legacy handshake without a probe. Drops the entry if `version` is not the
  // remembered one.
  void confirm(const std::string& server, std::string_view version);
  void forget(const std::string& server);

 private:
  struct Entry {
    std::string version;
    Time probed_at;
  };

  const std::chrono::milliseconds max_age_;
  const std::function<Time()> now_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace fairlead::mcp
