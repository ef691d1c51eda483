// Config: the configuration of a gateway, read from a TOML file or from the `mcpServers` JSON of desktop
// clients. docs/gateway.md lists the keys.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/byte_budget.hpp"
#include "fairlead/base/duration.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/pool/pool.hpp"
#include "fairlead/pool/server_spec.hpp"

namespace fairlead::gateway {

// Selects the clients that receive details (command line, PATH, stderr and addresses) when a server fails.
// The other clients receive the failure code, a short description and the remedy.
enum class FailureDetails : std::uint8_t {
  automatic,  // `everyone` if only this machine can reach the gateway and it has no authenticator, otherwise
              // `administrators`
  everyone,
  administrators,  // clients with the role "admin"
};

// The limit max_servers: how many servers a gateway can have.
inline constexpr std::size_t kMaxServers = 20'000;

struct Config {
  Config() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::string listen = "127.0.0.1:8808";
  unsigned socket_mode = 0600;               // file permissions if `listen` is a Unix socket
  std::vector<std::string> allowed_hosts;    // in addition to localhost, 127.0.0.1 and [::1]
  std::vector<std::string> allowed_origins;  // of browsers
  std::string tls_certificate;               // path of a PEM file; empty: no TLS
  std::string tls_key;                       // path of a PEM file
  std::string terminator_manifest;           // path of the manifest file; see process/manifest.hpp
  // How long a client's list request waits for servers whose lists have not been fetched yet.
  std::chrono::milliseconds list_wait{10'000};
  // When the lists of a server cannot be fetched, they are fetched again after this delay. The delay doubles
  // with each further failure.
  std::chrono::milliseconds list_retry{1'000};
  // The lists of a server are fetched at most once in this time, however often it notifies of changes. Read
  // once, when the gateway is created. Set by the program, not by a file.
  std::chrono::milliseconds min_list_interval{100};
  std::chrono::milliseconds drain_grace{5'000};  // how long a shutdown waits for calls in progress
  std::uint64_t max_frame_bytes = 10u << 20;     // of a message from a client or a server
  std::size_t max_noise_frames = 1000;           // consecutive malformed frames from one server; 0: no limit
  std::uint64_t max_body_bytes = 4u << 20;       // of a client's HTTP request
  ByteBudgetLimits buffers;                      // memory that the gateway buffers on behalf of clients
  FailureDetails failure_details = FailureDetails::automatic;
  pool::PoolLimits limits;                // the limits that the pool enforces
  std::vector<pool::ServerSpec> servers;  // the enabled servers
  // What is probably wrong in the file, such as misspelt keys in the file of a desktop client. Each names the
  // file, and the line and column of the key.
  std::vector<std::string> warnings;
  // The connectors, by the name in pool::ConnectorName. Set by the program, not by a file.
  std::map<std::string, Connector> connectors;
  // The openers of servers whose mcp::Client the pool does not create itself, such as servers on another
  // loop; see pool::PoolOptions::openers. Read once, when the gateway is created. Set by the program, not by
  // a file.
  std::map<std::string, pool::UpstreamOpener> openers;
  // Resolves ${secret:NAME}. Set by the program, not by a file.
  pool::SecretStore secret_store;
  // Whether clients are authenticated, which `per_user` servers require. Set by the program, not by a file.
  bool authenticated = false;
};

// Parse a configuration: JSON if the text begins with `{` or a JavaScript comment, otherwise TOML. Both
// functions fail with kind validation; the message names the file (`name` or `path`), the line, the column
// and the key. `authenticated` is copied to Config::authenticated; if it is false, `per_user` servers are
// rejected.
Result<Config> parse_config(std::string_view text, const std::string& name, bool authenticated = false);
Result<Config> load_config(const std::string& path, bool authenticated = false);

// Returns the server as a table [servers.NAME] of a TOML file.
std::string to_toml(const pool::ServerSpec& spec);

// Returns why the `sharing` of a spec cannot be used; nullopt if it can be used. `per_user` cannot be used
// without authentication, because all clients would be the same user.
std::optional<std::string> sharing_problem(const pool::ServerSpec& spec, bool authenticated);

// Parses file permissions in octal, such as 0660. Fails with kind validation.
Result<unsigned> parse_file_mode(std::string_view text);

}  // namespace fairlead::gateway
