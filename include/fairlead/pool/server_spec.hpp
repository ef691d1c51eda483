// ServerSpec: the configuration of one server: its transport, its sharing mode, and its timeouts. Plain data:
// comparable, and readable and writable as JSON (server_spec_json.hpp). docs/pool.md documents each member.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "fairlead/pool/supervisor.hpp"
#include "fairlead/process/child.hpp"
#include "fairlead/protocol/revision.hpp"

namespace fairlead::pool {

// Which callers share one process or connection.
enum class Sharing : std::uint8_t {
  automatic,    // shared, until the server is found to keep state per session
  shared,       // all callers
  per_session,  // one for each client session
  per_user,     // one for each user
};
std::string_view to_string(Sharing sharing) noexcept;

// Returns the key of the upstream that serves a client, of a server whose upstreams are not shared: the
// session, or the user. With per_session, a client without a session has the upstream of its user, so that it
// uses neither the connection nor the secrets of another user. Empty: clients that have neither share one.
std::string unshared_upstream_key(Sharing sharing, std::string_view session, std::string_view user);

// The timeouts and intervals of a server.
struct Clocks {
  using ms = std::chrono::milliseconds;

  ms spawn{10'000};       // maximum time until the program is loaded or the socket is connected
  ms handshake{30'000};   // maximum duration of the MCP handshake
  ms queue{10'000};       // maximum wait for a permit (processes, starts, calls) or for the end of a backoff
  ms idle{60'000};        // a call times out after this long without a response or progress
  ms absolute{600'000};   // a call times out after this long, regardless of progress
  ms ping{5'000};         // a ping times out after this long
  ms health{30'000};      // a server that has sent nothing for this long is pinged; 0: never
  ms idle_stop{600'000};  // a server without a call for this long is stopped; 0: never
  ms drain{60'000};  // how long active calls may continue after their server is removed, disabled or updated

  bool operator==(const Clocks&) const = default;
};

// `args`, the values of `env` and `headers`, and `url` may contain references (`${env:NAME}`,
// `${file:/path}`, `${secret:NAME}`). They are resolved at each start of the server; the resolved values are
// never stored in a spec.

// A program that is started as a child process. See ProcessSpec.
struct Program {
  std::string command;
  std::vector<std::string> args;
  std::map<std::string, std::string> env;
  // Variables of an `envFile`: literal and secret. Those of `env` take precedence. Set by the program that
  // has read the file; not part of the JSON of a spec.
  std::map<std::string, std::string> file_env;
  std::optional<std::vector<std::string>> inherit_env;  // if set, only these variables are inherited
  std::string cwd;
  StderrMode stderr_mode = StderrMode::log;
  Containment containment;

  bool operator==(const Program&) const = default;
};

// An address supported by transport::connect(). The headers apply to http, https, ws and wss.
struct Address {
  std::string url;
  std::map<std::string, std::string> headers;
  // If true, only http, https, ws and wss are allowed, and connections to loopback and private addresses fail
  // (http::ClientOptions::public_addresses_only). Set by the program, not by a file.
  bool public_addresses_only = false;

  bool operator==(const Address&) const = default;
};

// The name of an entry in PoolOptions::connectors or PoolOptions::openers: for tests, and for connections
// that are made by a program that embeds the pool.
struct ConnectorName {
  std::string name;

  bool operator==(const ConnectorName&) const = default;
};

struct ServerSpec {
  ServerSpec() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::string name;
  std::variant<Program, Address, ConnectorName> transport;
  Sharing sharing = Sharing::automatic;
  std::optional<mcp::Revision> pinned_revision;  // the only revision to use; unset: any
  RestartPolicy restart;
  Clocks clocks;
  std::size_t max_calls = 1024;  // active calls; further calls wait for up to clocks.queue
  // If true, the pool starts the server at once, restarts it whenever it ends, and never stops it for being
  // idle.
  bool keep_running = false;
  bool enabled = true;  // if false, calls are rejected

  // Returns whether the server is a child process. A child process needs a permit of max_stdio_processes.
  bool is_process() const;
  bool operator==(const ServerSpec&) const = default;
};

}  // namespace fairlead::pool
