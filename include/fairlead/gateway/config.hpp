// The configuration of a gateway: a TOML file, or the `mcpServers` JSON of desktop clients.
// docs/gateway.md lists the keys.
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

// Which clients get the command line, PATH, stderr and addresses of a server that failed. The other clients
// get the code, a sentence and the remedy.
enum class FailureDetails : std::uint8_t {
  automatic,  // everyone if only this machine can reach the gateway and it has no authenticator
  everyone,
  administrators,  // clients with the role "admin"
};

// The servers that a gateway may have (max_servers).
inline constexpr std::size_t kMaxServers = 20'000;

struct Config {
  Config() {}  // NOLINT: not an aggregate, see ConnectOptions

  std::string listen = "127.0.0.1:8808";
  unsigned socket_mode = 0600;             // permissions of the file where `listen` is a Unix socket
  std::vector<std::string> allowed_hosts;  // beside localhost, 127.0.0.1 and [::1]
  std::vector<std::string> allowed_origins;
  std::string tls_certificate;
  std::string tls_key;
  std::string terminator_manifest;
  std::chrono::milliseconds list_wait{10'000};  // how long a list waits for servers that have not listed yet
  std::chrono::milliseconds list_retry{
      1'000};  // until one that could not list is asked again; then twice that
  std::chrono::milliseconds drain_grace{5'000};
  std::uint64_t max_frame_bytes = 10u << 20;  // of a message of a client or a server
  std::size_t max_noise_frames = 1000;        // in a row, of one server; 0: no limit
  std::uint64_t max_body_bytes = 4u << 20;    // of a client's HTTP request
  ByteBudgetLimits buffers;                   // memory that clients make the gateway use
  FailureDetails failure_details = FailureDetails::automatic;
  pool::PoolLimits limits;
  std::vector<pool::ServerSpec> servers;  // those that are enabled
  // What servers that are a NamedConnector are connected with. Not part of a file.
  std::map<std::string, Connector> connectors;
  // The same for servers that the pool does not make the client of, such as those on another loop; see
  // pool::PoolOptions::openers. Read once, when the gateway is created. Not part of a file.
  std::map<std::string, pool::UpstreamOpener> openers;
  // What ${secret:NAME} is looked up in. Not part of a file.
  pool::SecretStore secrets;
  // Clients are authenticated, so that `per_user` has users to distinguish. Not part of a file.
  bool authenticated = false;
};

// Kind validation, with the line or the key that is wrong. JSON when it begins with `{` or a comment of
// JavaScript's, otherwise TOML.
// `authenticated` becomes that of the configuration; without it a server that is `per_user` is refused.
Result<Config> parse_config(std::string_view text, const std::string& name, bool authenticated = false);
Result<Config> load_config(const std::string& path, bool authenticated = false);

// The server as a table [servers.NAME] of a TOML file.
std::string to_toml(const pool::ServerSpec& spec);

// Why a server cannot be shared as its spec says: `per_user` without authentication, where all clients would
// be one user. Nullopt if it can.
std::optional<std::string> sharing_problem(const pool::ServerSpec& spec, bool authenticated);

// Permissions of a file in octal, such as 0660. Kind validation otherwise.
Result<unsigned> parse_file_mode(std::string_view text);

}  // namespace fairlead::gateway
