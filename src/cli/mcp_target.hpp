// What the commands that talk to an MCP server share: connecting to TARGET, showing progress and logs, asking
// the user.
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
  std::string revision;  // empty: whatever the server speaks
  std::chrono::milliseconds timeout = Limits().call_timeout;
  bool json = false;

  void add_to(CLI::App& command);
  mcp::ClientOptions client_options() const;
  mcp::ToolCallOptions call_options() const;
};

// Connects, runs `body` with the client, closes. Returns the exit status: that of the body, or of the error
// met on the way.
using McpBody = std::function<Task<Result<int>>(std::shared_ptr<mcp::Client>)>;
int with_client(const McpTarget& target, const McpBody& body);

}  // namespace fairlead::cli
