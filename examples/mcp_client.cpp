// Starts an MCP server, lists its tools and calls one.
#include <fairlead/mcp/client.hpp>

#include <iostream>

using namespace fairlead;

static Task<int> talk(Loop& loop, std::string server, std::string tool, std::string arguments) {
  Task<Result<std::shared_ptr<mcp::Client>>> connecting = mcp::Client::connect(loop, server);
  const Result<std::shared_ptr<mcp::Client>> client = co_await connecting;
  if (!client) {
    std::cerr << client.error().to_string() << "\n";
    co_return 1;
  }
  const Result<json::Raw> args = json::Raw::parse(arguments);
  if (!args) co_return 2;
  Task<Result<mcp::ToolResult>> calling = (*client)->call_tool(tool, *args);
  const Result<mcp::ToolResult> result = co_await calling;
  if (result) {
    for (const mcp::Content& content : result->content) std::cout << content.text() << "\n";
  } else {
    std::cerr << result.error().to_string() << "\n";
  }
  Task<void> closing = (*client)->close();
  co_await closing;
  co_return result ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  Loop loop;
  return loop.block_on(talk(loop, argv[1], argv[2], argv[3]));
}
