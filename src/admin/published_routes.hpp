// The read API of a public registry of MCP servers, below /v0.1: for everybody, without a token, and for web
// pages of every origin. Private to the layer.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "admin/published_servers.hpp"
#include "fairlead/base/string_map.hpp"
#include "fairlead/http/server.hpp"

namespace fairlead::admin {

inline constexpr std::string_view kPublishedPrefix = "/v0.1";
inline constexpr std::size_t kMaxPublishedRequests = 600;  // max_published_requests: of a network in a minute

// Whether a path belongs to the API.
bool is_published_path(std::string_view path) noexcept;

// {"error":"…"}
http::Response published_error(int status, std::string_view message);

class PublishedRoutes {
 public:
  explicit PublishedRoutes(const std::shared_ptr<registry::Registry>& registry) : servers_(registry) {}

  static void add(const std::shared_ptr<PublishedRoutes>& self, http::Server& server);

 private:
  http::Response serve(const http::Request& request);
  http::Response read(std::string_view path, std::string_view query) const;
  bool is_too_frequent(const http::Request& request);

  PublishedServers servers_;
  StringMap<std::size_t> requests_;  // by network, in the current minute
  std::chrono::steady_clock::time_point minute_{};
};

}  // namespace fairlead::admin
