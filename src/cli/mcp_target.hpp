// Shared by the commands that call an MCP server: connecting to TARGET, printing progress and logs, and
// asking the user the questions of the server (elicitation).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/common.hpp"
#include "cli/output.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/mcp/client.hpp"

namespace fairlead::cli {

struct McpTarget {
  CommonOptions common{.log_level = "warning"};
  WebOptions web;
  std::string uri;
  std::string revision;  // empty: negotiated with the server
  std::chrono::milliseconds timeout = Limits().call_timeout;
  bool json = false;  // print the JSON that the server sent

  void add_to(CLI::App& command);
  mcp::ClientOptions client_options() const;
  mcp::ClientCallOptions call_options() const;
};

// Connects, runs `action` with the client, and closes the connection. Returns the exit status of the action,
// or that of the first error, which is printed to stderr.
using ClientAction = std::function<Task<Result<int>>(std::shared_ptr<mcp::Client>)>;
int run_with_client(const McpTarget& target, const ClientAction& action);

}  // namespace fairlead::cli
