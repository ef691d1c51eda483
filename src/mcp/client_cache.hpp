// ClientCache: results a modern server says may be used again, for as long as it says so and until it tells
// of a change. Does no I/O and knows no clock: its user says what time it is.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/json/indexed.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/protocol/list_limits.hpp"

namespace fairlead::mcp {

class ClientCache {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::size_t kMostEntries = 1000;
  static constexpr std::size_t kMostBytes = 16u << 20;
  static constexpr std::chrono::hours kLongest{24};
  // Results of requests with larger params are not kept.
  static constexpr std::size_t kMaxParamsBytes = 64u << 10;

  // A longer URI in a notification is not decoded: all resources that were read are forgotten.
  explicit ClientCache(std::size_t max_uri_bytes = ListLimits().max_uri_bytes)
      : max_uri_bytes_(max_uri_bytes) {}

  // The result of such a request, while it is fresh.
  std::optional<json::Indexed> find(std::string_view method, json::View params, Time now) const;
  // Keeps a complete result, if it may be kept. `asked_at` is generation() as it was when the request was
  // sent: what was asked for before a change and answered after it is not kept.
  void store(std::string_view method, json::View params, const json::Indexed& result, Time now,
             std::uint64_t asked_at);
  // The result of such a request, however old.
  std::optional<json::Indexed> find_stale(std::string_view method, json::View params) const;
  // What was learned on another connection: changes may have been missed since.
  void clear() { drop(""); }
  std::uint64_t generation() const noexcept { return generation_; }

  // Forgets what a notification of the server has made stale.
  void on_notification(std::string_view method, json::View params);
  // A page's cursor was refused: none of the pages of this list is worth anything.
  void on_bad_cursor(std::string_view method);

  std::size_t entries() const noexcept { return entries_.size(); }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Entry {
    json::Indexed result;
    Time fresh_until;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  void drop(std::string_view prefix);
  Entries::iterator erase(Entries::iterator at);
  void make_room(std::size_t bytes, Time now);

  std::size_t max_uri_bytes_;
  Entries entries_;  // by method, line end, and what tells its results apart
  std::size_t bytes_ = 0;
  std::uint64_t generation_ = 0;
};

}  // namespace fairlead::mcp
