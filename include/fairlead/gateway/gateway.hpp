// Gateway: many MCP servers behind one. It offers their tools, resources and prompts under names of its own,
// forwards each call through the pool to its server, and messages of servers to the client they are for.
//
//   auto gateway = Gateway::create(loop, config);
//   mcp::serve(gateway->front(), connection);
//
// It lives on one loop.
#pragma once

#include <memory>
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

namespace fairlead::gateway {

// The limits for connections to clients, large enough for messages of servers.
Limits frame_limits(const Config& config);

// The keys in the `_meta` of a list result that lacks the lists of some servers: the array of the names of
// the first kMaxNamedMissing of them, and the number of the others, if there are any.
inline constexpr std::string_view kIncompleteKey = "fairlead/incomplete";
inline constexpr std::string_view kIncompleteOthersKey = "fairlead/incompleteOthers";
inline constexpr std::size_t kMaxNamedMissing = 100;

// How well a gateway serves (docs/gateway.md, "Health").
enum class HealthStatus : std::uint8_t {
  ok,        // no enabled server has failed; some may be starting
  degraded,  // some server has failed, does not answer, or lacks some of its lists
  failed,    // every enabled server has failed
  draining,  // the gateway is being shut down
};
std::string_view to_string(HealthStatus status) noexcept;

struct Health {
  Health() {}  // NOLINT: not an aggregate, see ConnectOptions

  HealthStatus status = HealthStatus::ok;
  std::vector<Bytes> report;  // with counts and the state of every server: JSON text, in parts

  std::string text() const;  // the parts as one
};
using HealthPtr = std::shared_ptr<const Health>;

class Gateway {
 public:
  // Begins to list the servers. Kind validation for names that cannot be used, and for servers
  // that are per_user unless config.authenticated.
  static Result<std::shared_ptr<Gateway>> create(Loop& loop, Config config, Log log = {});
  virtual ~Gateway() = default;

  // What clients see; serve it on as many connections and endpoints as you like, on the gateway's loop.
  virtual const mcp::Server& front() const noexcept = 0;
  virtual pool::Pool& pool() const noexcept = 0;
  // The report with all details, as JSON. It is made in one turn of the loop, which takes long if there are
  // thousands of servers.
  virtual json::Raw health() const = 0;
  // The report for `reader`, made in slices, between which the loop serves others. Error texts, connections
  // and users are included only for clients that get failure details (Config::failure_details). One report is
  // made at a time; requests that come meanwhile share the next one. Kind cancelled if `stop`, and that of
  // all that share the report, is requested before its end.
  virtual Task<Result<HealthPtr>> health_for(const Principal& reader, std::stop_token stop) const = 0;
  // A tool of the gateway itself, offered beside those of servers, at any time; clients are told that the
  // list has changed. `handler` finds the client in Context::principal(). Kind validation for an invalid
  // schema, a name that is taken, and a name with `__`, which separates a server's name from its tool's.
  virtual Result<void> add_tool(mcp::ToolSpec spec, mcp::Server::CoroutineTool handler) = 0;
  // Returns whether there was one.
  virtual bool remove_tool(const std::string& name) = 0;
  // Changes of the servers, at any time. Kind validation for a name that cannot be used, is taken, or is
  // unknown; then nothing has changed. Clients are told of lists that change; calls under way finish
  // (clocks.drain).
  virtual Result<void> add_server(pool::ServerSpec spec) = 0;
  // What the server listed last is offered until it has listed anew.
  virtual Result<void> update_server(pool::ServerSpec spec) = 0;
  virtual Result<void> remove_server(std::string_view name) = 0;
  virtual Result<void> enable_server(std::string_view name) = 0;
  // Nothing of a disabled server is offered, and calls to it fail and say that it is disabled.
  virtual Result<void> disable_server(std::string_view name) = 0;
  // Applies the servers, list_wait and list_retry of a new configuration; its other keys are ignored. New
  // servers are added, missing ones removed, and those whose spec has changed replaced; calls under way
  // finish (clocks.drain). Kind validation if a server's name cannot be used; then nothing has changed.
  // Otherwise many servers are changed in several steps, between which the loop serves clients. If a later
  // configuration is applied before the last step, this one fails with kind cancelled; the outcome is that of
  // the later one.
  virtual Task<Result<void>> reload(Config config) = 0;
  // Fails as reload() would, and changes nothing.
  virtual Result<void> check_reload(const Config& config) const = 0;
  // Lets calls under way finish, for `grace` at most, and stops all servers.
  virtual Task<void> shutdown(std::chrono::milliseconds grace) = 0;
};

}  // namespace fairlead::gateway
