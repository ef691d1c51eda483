// A TARGET that is the name of a server: one of a configuration file (--config), or one of the current
// gateway.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/admin_client.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"
#include "fairlead/process/child.hpp"
#include "fairlead/transport/connect.hpp"

namespace fairlead::cli {

// The options that say whose servers the names are.
struct ServerChoice {
  std::string config;     // --config; empty: the servers of the gateway
  GatewayChoice gateway;  // --gateway, --context, --token-file, --db

  void add_to(CLI::App& command);
};

// Where a named server is: a process to start, or a URL.
struct ServerAddress {
  std::optional<ProcessSpec> process;
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<std::string> secrets;  // redacted in errors
  std::string unix_socket;           // of the gateway; empty: TCP
  std::string ca_file;

  void apply_to(transport::ConnectOptions& options) const;
};

// Returns whether TARGET is to be looked up: it is a name, and not an address.
bool is_server_name(const std::string& target);

// Fails with `validation` if no server has this name; the message suggests a similar name.
Task<Result<ServerAddress>> find_server(const ServerChoice& choice, std::string name);

// If `error` says that the gateway has no server with this name, returns an error that suggests a similar
// one.
Task<Error> with_similar_server(Loop& loop, const ServerChoice& choice, std::string name, Error error);

}  // namespace fairlead::cli
