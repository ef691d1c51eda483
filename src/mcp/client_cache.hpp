// ClientCache: caches the results of a modern server until their time to live (TTL) expires or the server
// notifies the client of a change. Does no I/O; the caller passes the current time.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/json/indexed_raw.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/protocol/list_limits.hpp"

namespace fairlead::mcp {

class ClientCache {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::size_t kMaxEntries = 1000;
  static constexpr std::size_t kMaxBytes = 16u << 20;  // of the keys and results of all entries
  static constexpr std::chrono::hours kMaxTtl{24};     // longer TTLs of the server are shortened
  // Results of requests with larger params are not cached.
  static constexpr std::size_t kMaxParamsBytes = 64u << 10;

  // `max_notified_uri_bytes`: a notification about a resource with a longer URI invalidates all cached
  // resources, because that URI is not decoded.
  explicit ClientCache(std::size_t max_notified_uri_bytes = ListLimits().max_uri_bytes)
      : max_notified_uri_bytes_(max_notified_uri_bytes) {}

  // Returns the cached result of the request; nullopt if there is none or it has expired.
  std::optional<json::IndexedRaw> find(std::string_view method, json::View params, Time now) const;
  // Stores a complete result if it has a TTL and is at most a quarter of kMaxBytes. `request_generation` is
  // the value of generation() when the request was sent; if it differs from the present one, the result is
  // not stored, because it may be older than a change of which the server has notified the client.
  void store(std::string_view method, json::View params, const json::IndexedRaw& result, Time now,
             std::uint64_t request_generation);
  // Returns the cached result of the request, even if it has expired.
  std::optional<json::IndexedRaw> find_stale(std::string_view method, json::View params) const;
  // Erases all results. Called after a reconnect, because the client may have missed notifications of
  // changes.
  void clear() { erase_prefix(""); }
  // Returns the number of invalidations so far, which store() compares.
  std::uint64_t generation() const noexcept { return generation_; }

  // Erases the results that a notification of the server invalidates.
  void invalidate_by_notification(std::string_view method, json::View params);
  // Erases all pages of a list. Called when the server has rejected the cursor of a page.
  void erase_pages(std::string_view method);

  std::size_t entry_count() const noexcept { return entries_.size(); }
  std::size_t byte_count() const noexcept { return bytes_; }

 private:
  struct Entry {
    json::IndexedRaw result;
    Time fresh_until;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  // Erases the entries whose key begins with `prefix`, and counts as an invalidation.
  void erase_prefix(std::string_view prefix);
  Entries::iterator erase(Entries::iterator entry);
  // Evicts entries until there is room for another one of `bytes`.
  void make_room(std::size_t bytes, Time now);

  std::size_t max_notified_uri_bytes_;  // longer URIs in notifications are not decoded
  Entries entries_;        // the key is the method, a line feed, and the value of the URI or cursor
  std::size_t bytes_ = 0;  // of the keys and results of all entries
  std::uint64_t generation_ = 0;
};

}  // namespace fairlead::mcp
