// An MCP server written with fairlead as a user would write it: a typed tool with validated arguments, on
// stdin and stdout. With --http ADDRESS it serves over HTTP instead; the tool `progress` sends a notification
// before its result, which makes the response an event stream. A number as the last argument adds that many
// tools, for measuring tools/list.
#include <cstdlib>

#include "fairlead/mcp/serve.hpp"
#include "fairlead/mcp/typed.hpp"

namespace {

struct EchoArgs {
  std::string message;
};
BOOST_DESCRIBE_STRUCT(EchoArgs, (), (message))

std::string echo(const EchoArgs& in) {
  return in.message;
}

std::string echo_with_progress(const fairlead::mcp::Context& context, const EchoArgs& in) {
  context.report_progress(1, 1);
  return in.message;
}

}  // namespace

int main(int argc, char** argv) {
  const bool http = argc > 2 && std::string_view(argv[1]) == "--http";
  const int more = argc > (http ? 3 : 1) ? std::atoi(argv[http ? 3 : 1]) : 0;
  fairlead::mcp::Server server("mcp_server", "1");
  fairlead::mcp::tool(server, "echo", "Returns the message it was given", &echo);
  for (int i = 0; i < more; ++i) {
    fairlead::mcp::tool(server, "tool" + std::to_string(i), "Returns the message it was given", &echo);
  }
  if (!http) return fairlead::mcp::serve_stdio(server);
  fairlead::mcp::tool(server, "progress", "The same, as events", &echo_with_progress);
  return fairlead::mcp::serve_http(server, argv[2]);
}
