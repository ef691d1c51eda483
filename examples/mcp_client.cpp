// Starts an MCP server and calls one of its tools: mcp_client ENDPOINT TOOL ARGUMENTS
#include <fairlead/mcp/client.hpp>

#include <iostream>

using namespace fairlead;

static Task<int> call_tool(Loop& loop, std::string server, std::string tool, std::string arguments) {
  const Result<std::shared_ptr<mcp::Client>> client = co_await mcp::Client::connect(loop, server);
  if (!client) {
    std::cerr << client.error().to_string() << "\n";
    co_return 1;
  }
  const Result<json::Raw> args = json::Raw::parse(arguments);
  if (!args) co_return 2;
  const Result<mcp::ToolResult> result = co_await (*client)->call_tool(tool, *args);
  if (result) {
    for (const mcp::Content& content : result->content) std::cout << content.text() << "\n";
  } else {
    std::cerr << result.error().to_string() << "\n";
  }
  co_await (*client)->close();
  co_return result ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  Loop loop;
  return loop.block_on(call_tool(loop, argv[1], argv[2], argv[3]));
}
