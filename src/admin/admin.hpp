// Admin: the HTTP API by which the registry and the gateway are administered (docs/admin-api.md). All calls
// are made on the loop thread. Private to the library.
//
//   options.add_routes = [&](http::Server& server, gateway::Gateway& gateway) {
//     admin = Admin::create(loop, registry, gateway, admin_options);
//     admin->add_routes(server);
//   };
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/log.hpp"
#include "fairlead/gateway/gateway.hpp"
#include "fairlead/gateway/gateway_server.hpp"
#include "fairlead/http/server.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/pool/pool.hpp"
#include "registry/registry.hpp"

namespace fairlead::admin {

struct AdminOptions {
  AdminOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  Log log;
  std::string version = "0";  // of the program, for the OpenAPI document
  // Of a request: 413. More than max_row_bytes, whose error names the member that is too large.
  std::size_t max_admin_body_bytes = 2u << 20;
  std::size_t max_client_requests = 1'024;    // of one client at the same time: 429
  std::size_t max_event_streams = 100;        // open streams of events and logs: 429
  std::size_t max_client_event_streams = 20;  // of one client
  std::size_t max_server_tests = 4;           // tests of servers at the same time: 429
  std::chrono::milliseconds server_test_timeout{60'000};
  // Options of the pool in which a server is tested: connectors, secret store, manifest and client. Its
  // limits and handlers are not used.
  pool::PoolOptions test_pool;
  // Returns the spec with which the gateway runs a server. Unset: the spec of the row.
  std::function<pool::ServerSpec(const registry::Server&)> spec_of;
  // Returns when the lists of a server (by id) that the gateway has fetched are stored. Unset: at once.
  std::function<Task<void>(std::string server_id)> lists_stored;
  // Ends the MCP sessions of the clients for which `selected` returns true, because their access was revoked.
  std::function<void(const std::function<bool(const Principal&)>& selected)> end_sessions;
  std::function<std::vector<gateway::SessionInfo>()> sessions;  // the open MCP sessions
  std::function<bool(const std::string& id)> end_session;       // returns false if there is no such session
};

class Admin {
 public:
  // REQUIRES: `gateway` outlives the object, or close() is called before the gateway is destroyed.
  static std::shared_ptr<Admin> create(Loop& loop, std::shared_ptr<registry::Registry> registry,
                                       gateway::Gateway& gateway, AdminOptions options = AdminOptions());
  virtual ~Admin() = default;

  // Returns the problem document for a request to the admin API that the HTTP server has rejected. See
  // http::ServerOptions::rejection_response.
  static std::optional<http::Response> rejection_response(std::string_view target, int status,
                                                          std::string_view message);
  // Adds the routes of the API, of /openapi.json and of /docs to a server of the same loop.
  virtual void add_routes(http::Server& server) = 0;
  // Ends the event streams and the tests of servers, so that the HTTP server can drain. New requests for them
  // are rejected.
  virtual void close() = 0;
};

}  // namespace fairlead::admin
