// Shared by the commands that call an MCP server: connecting to TARGET, printing progress and logs, and
// asking the user the questions of the server (elicitation).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/common.hpp"
#include "cli/named_target.hpp"
#include "cli/output.hpp"
#include "cli/stdio_target.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/mcp/client.hpp"

namespace fairlead::cli {

struct McpTarget {
  CommonOptions common{.log_level = "warning"};
  WebOptions web;
  StdioTargetOptions stdio;
  ServerChoice servers;  // whose names TARGET may be
  std::string uri;
  std::string revision;  // empty: negotiated with the server
  std::chrono::milliseconds timeout = Limits().call_timeout;
  bool json = false;  // print the JSON that the server sent
  // Set while run_with_client() runs; `progress` only if stderr is a terminal.
  Loop* client_loop = nullptr;
  std::shared_ptr<ProgressLine> progress;

  void add_to(CLI::App& command);
  // Show what the command waits for; hide it before output is printed.
  void show_progress(std::string state) const;
  void hide_progress() const;
  // The loop must outlive the client.
  mcp::ClientOptions client_options(Loop& loop) const;
  mcp::ClientCallOptions call_options() const;
};

// Connects, runs `action` with the client, and closes the connection. Returns the exit status of the action,
// or that of the first error, which is printed to stderr.
using ClientAction = std::function<Task<Result<int>>(std::shared_ptr<mcp::Client>)>;
int run_with_client(McpTarget& target, const ClientAction& action);

}  // namespace fairlead::cli
