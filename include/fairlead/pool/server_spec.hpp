// ServerSpec: one server as configuration has it: how it is reached, who shares it, how long to wait for
// what. Plain data: comparable, and readable and writable as JSON (server_spec_json.hpp). docs/pool.md
// explains each member.
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

// Who may be served by one and the same process or connection.
enum class Sharing : std::uint8_t {
  automatic,    // shared, until the server shows that it keeps something of one session for itself
  shared,       // everybody
  per_session,  // one for each session of a client
  per_user,     // one for each user
};
std::string_view to_string(Sharing sharing) noexcept;

// Each wait has a clock of its own.
struct Clocks {
  using ms = std::chrono::milliseconds;

  ms spawn{10'000};       // until the program is loaded, the socket connected
  ms handshake{30'000};   // until the server has answered the protocol's greeting
  ms queue{10'000};       // for a place: among the processes, among the calls, and for a back-off to end
  ms idle{60'000};        // a call without answer or progress
  ms absolute{600'000};   // a call, however much progress there is
  ms ping{5'000};         // for the answer to a ping
  ms health{30'000};      // without a sign of life for this long it is pinged; 0: never
  ms idle_stop{600'000};  // without a call for this long it is stopped; 0: never
  ms drain{60'000};       // calls under way when it is removed, disabled or updated

  bool operator==(const Clocks&) const = default;
};

// In `args`, the values of `env` and `headers`, and `url`, references (`${env:NAME}`, `${file:/path}`,
// `${secret:NAME}`) stand for values that are kept elsewhere. They are resolved at each start of the server
// and are never kept in a spec.

// A program that is started as a child process. See ProcessSpec.
struct Program {
  std::string command;
  std::vector<std::string> args;
  std::map<std::string, std::string> env;
  std::optional<std::vector<std::string>> inherit_env;  // if set, only these variables are inherited
  std::string cwd;
  StderrMode stderr_mode = StderrMode::log;
  Containment containment;

  bool operator==(const Program&) const = default;
};

// Any address that transport::connect() knows; the headers are for http, https, ws and wss.
struct Address {
  std::string url;
  std::map<std::string, std::string> headers;

  bool operator==(const Address&) const = default;
};

// A connector of PoolOptions::connectors, by its name: for tests, and for connections that a program that
// embeds the pool makes itself.
struct NamedConnector {
  std::string name;

  bool operator==(const NamedConnector&) const = default;
};

struct ServerSpec {
  ServerSpec() {}  // NOLINT: not an aggregate, see ConnectOptions

  std::string name;
  std::variant<Program, Address, NamedConnector> reach;
  Sharing sharing = Sharing::automatic;
  std::optional<mcp::Revision> pinned;  // speak this and nothing else
  RestartPolicy restart;
  Clocks clocks;
  std::size_t max_calls = 1024;  // under way at once; further ones wait for clocks.queue
  bool keep_running = false;     // start it at once, and again after each end; never stop it for being idle
  bool enabled = true;           // otherwise calls are refused

  // Whether a start of it takes one of max_stdio_processes.
  bool is_process() const;
  bool operator==(const ServerSpec&) const = default;
};

}  // namespace fairlead::pool
