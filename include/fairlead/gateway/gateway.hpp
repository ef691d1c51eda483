// Gateway: an MCP server that aggregates many MCP servers. It lists their tools, resources and prompts under
// public names and forwards each call through the pool to its server. A message from a server is forwarded to
// the client that it is for.
//
// Example:
//   auto gateway = gateway::Gateway::create(loop, config);
//   if (!gateway) return report(gateway.error());
//   mcp::serve((*gateway)->front(), connection);
//
// All calls are made on the gateway's loop thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/bytes.hpp"
#include "fairlead/base/log.hpp"
#include "fairlead/base/principal.hpp"
#include "fairlead/gateway/config.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/mcp/server.hpp"
#include "fairlead/registry/model.hpp"
#include "fairlead/transport/endpoint.hpp"

namespace fairlead::gateway {

// Returns the limits for connections to clients and servers. They are large enough to forward a message of
// the maximum size (config.max_frame_bytes).
Limits connection_limits(const Config& config);

// If a list result lacks the entries of some servers, its `_meta` has these keys: kIncompleteKey is an array
// with the names of the first kMaxNamedMissingServers of these servers; kIncompleteOthersKey is the number of
// the other such servers, absent if there are none.
inline constexpr std::string_view kIncompleteKey = "fairlead/incomplete";
inline constexpr std::string_view kIncompleteOthersKey = "fairlead/incompleteOthers";
inline constexpr std::size_t kMaxNamedMissingServers = 100;

// The health of a gateway (docs/gateway.md, "Health").
enum class HealthStatus : std::uint8_t {
  ok,        // no enabled server has failed; some servers may still be starting
  degraded,  // some server has failed, does not respond, or has a list that could not be fetched
  failed,    // every enabled server has failed
  draining,  // the gateway is being shut down
};
std::string_view to_string(HealthStatus status) noexcept;

// A report of the health of a gateway.
struct Health {
  Health() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  HealthStatus status = HealthStatus::ok;
  std::vector<Bytes> report;  // JSON text with counts and the state of every server, split into chunks

  std::string text() const;  // returns the chunks of `report` joined
};
using HealthPtr = std::shared_ptr<const Health>;

// Which clients see a server, and which of its tools. The default is what a server of a configuration file
// has.
struct ServerPolicy {
  ServerPolicy() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  registry::Visibility visibility = registry::Visibility::visible;
  std::string owner;  // Principal::user of its owner; empty: the administrators
  std::string title;
  std::string description;
  std::string domain;
  std::vector<std::string> tags;
  registry::ToolRules tools;
  // Whether clients without a user may use a server with sharing `per_user`; they share one upstream.
  bool admits_clients_without_user = false;

  bool operator==(const ServerPolicy&) const = default;
};

// The lists of a server as it returned them. A list that is absent could not be fetched.
struct FetchedLists {
  FetchedLists() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  // If false, the lists are those of an upstream that serves only one session or user, or the observer was
  // called with them before.
  bool to_be_stored = true;
  std::optional<std::vector<json::Raw>> tools;
  std::optional<std::vector<json::Raw>> resources;
  std::optional<std::vector<json::Raw>> templates;
  std::optional<std::vector<json::Raw>> prompts;
};

// Decides which fetched entries are offered: those that are not quarantined in the returned lists, and those
// that these lists do not contain. Null: all entries are offered.
using ListsObserver = std::function<std::shared_ptr<const registry::StoredLists>(const std::string& server,
                                                                                 const FetchedLists& lists)>;

// How the tools of a server have changed; the names are the server's own.
struct ToolChanges {
  ToolChanges() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::size_t tools = 0;  // that the server lists now
  std::vector<std::string> added;
  std::vector<std::string> removed;
  std::vector<std::string> changed;
};

// The endpoints of a gateway: views of its servers that clients use at different paths. Without any call of
// put(), there are the endpoint at /mcp with all servers and the endpoints with one server, /mcp/{server}.
class Endpoints {
 public:
  virtual ~Endpoints() = default;

  // Adds an endpoint, or replaces the one with the same name. The endpoint named registry::kDefaultEndpoint
  // is at /mcp, every other one at /mcp/e/{name}. Sessions continue; their clients are notified of lists that
  // have changed. Fails with kind validation for an invalid name.
  virtual Result<void> put(registry::Endpoint endpoint) = 0;
  // Removes an endpoint. Removing the default endpoint makes /mcp an unknown endpoint.
  virtual void remove(std::string_view name) = 0;
  // Returns the application that serves the endpoint at "/mcp" + `path`: "" for the default endpoint,
  // "/e/{name}", or "/{server}". The same endpoint has the same application as long as it is used. Fails with
  // the failure code unknown_endpoint if there is no such endpoint, or if `principal` may not use it.
  virtual Result<std::shared_ptr<transport::Application>> find(std::string_view path,
                                                               const Principal& principal) = 0;
  // Returns the application of the default endpoint.
  virtual std::shared_ptr<transport::Application> default_application() const = 0;
  // Returns whether find() would return `application` for this principal.
  virtual bool allows(const transport::Application& application, const Principal& principal) const = 0;
  // Sets the function that is called after a change that may have taken the access to an endpoint away from
  // some clients, so that their sessions can be ended.
  virtual void on_access_reduced(std::function<void()> callback) = 0;
};

class Gateway {
 public:
  // Creates a gateway and starts to fetch the lists of its servers. Fails with kind validation if a server's
  // name is invalid, or if a server is per_user and config.authenticated is false.
  static Result<std::shared_ptr<Gateway>> create(Loop& loop, Config config, Log log = {});
  virtual ~Gateway() = default;

  // Returns the MCP server that clients connect to. It can be served on any number of connections and
  // endpoints, all on the gateway's loop.
  virtual const mcp::Server& front() const noexcept = 0;
  virtual pool::Pool& pool() const noexcept = 0;
  // Returns the health report with all details, as JSON. The report is built in one turn of the loop, which
  // blocks the loop for long if there are thousands of servers.
  virtual json::Raw health() const = 0;
  // Returns the health report for the principal `reader`, built in slices. Error texts, connections and users
  // are included only for clients that receive failure details (Config::failure_details). One report is built
  // at a time; calls that are made meanwhile share the next report. Fails with kind cancelled if stop is
  // requested, before the report is complete, on the tokens of all calls that share the report.
  virtual Task<Result<HealthPtr>> health_for(const Principal& reader, std::stop_token stop) const = 0;
  // Adds a tool of the gateway itself, which is listed with the tools of the servers. Can be called at any
  // time; clients are notified that the list of tools has changed. In `handler`, Context::principal() is the
  // client that calls the tool. Fails with kind validation for an invalid schema, a duplicate name, and a
  // name with `__`, which separates a server's name from its tool's.
  virtual Result<void> add_tool(mcp::ToolSpec spec, mcp::Server::CoroutineTool handler) = 0;
  // Removes a tool that add_tool() has added. Returns false if the gateway has no tool of this name.
  virtual bool remove_tool(const std::string& name) = 0;
  // The following functions change the configured servers and can be called at any time. They fail with kind
  // validation, without any change, if the server's name is invalid, already in use (add_server) or unknown.
  // Clients are notified of lists that change. Calls in progress may finish within `clocks.drain`.
  virtual Result<void> add_server(pool::ServerSpec spec) = 0;
  // Replaces the spec of the server with the same name. The previous lists of the server stay in use until
  // its lists have been fetched again.
  virtual Result<void> update_server(pool::ServerSpec spec) = 0;
  virtual Result<void> remove_server(std::string_view name) = 0;
  // Adds the server, or changes the one with the same name. A server whose spec is unchanged is not
  // restarted. `stored` are the lists that the server returned before (null: none). They are offered until
  // the server lists itself; as long as there are any, the server is not started just to fetch its lists.
  // Entries that are quarantined in `stored` are neither listed nor callable, also if the server has listed
  // itself since.
  virtual Result<void> put_server(pool::ServerSpec spec, ServerPolicy policy,
                                  std::shared_ptr<const registry::StoredLists> stored) = 0;
  // Fetches the lists of the server now; starts it if necessary. Fails if a list cannot be fetched.
  virtual Task<Result<ToolChanges>> refresh(std::string server) = 0;
  // Sets the function that is called with the lists of a server after they were fetched and before they are
  // offered, and again in put_server(), because what is quarantined may have changed.
  virtual void on_lists(ListsObserver observer) = 0;
  virtual Endpoints& endpoints() noexcept = 0;
  virtual Result<void> enable_server(std::string_view name) = 0;
  // Hides the lists of the server. Calls to a disabled server fail with an error that says it is disabled.
  virtual Result<void> disable_server(std::string_view name) = 0;
  // Applies list_wait, list_retry, limits and failure_details; all other keys are ignored. Lower limits do
  // not end processes and calls that exist.
  virtual void apply(const Config& config) = 0;
  // Applies the servers, list_wait and list_retry of a new configuration; its other keys are ignored. New
  // servers are added, servers that it does not contain are removed, and servers whose spec has changed are
  // replaced. Calls in progress may finish within `clocks.drain`. Fails with kind validation, without any
  // change, if a server's name is invalid. Many servers are changed in slices. If reload() is called again
  // before the last slice, the first call fails with kind cancelled, and the later configuration is applied.
  virtual Task<Result<void>> reload(Config config) = 0;
  // Validates a configuration: fails as reload() would, and changes nothing.
  virtual Result<void> check_reload(const Config& config) const = 0;
  // Drains the gateway: waits up to `grace` for calls in progress, then stops all servers.
  virtual Task<void> shutdown(std::chrono::milliseconds grace) = 0;
};

}  // namespace fairlead::gateway
