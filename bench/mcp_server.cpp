// Our MCP server: a typed tool whose arguments are validated, on stdin and stdout, written as a user would
// write it. With a number on the command line it has that many more tools, for measuring tools/list.
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

}  // namespace

int main(int argc, char** argv) {
  fairlead::mcp::Server server("mcp_server", "1");
  fairlead::mcp::tool(server, "echo", "Returns the message it was given", &echo);
  const int more = argc > 1 ? std::atoi(argv[1]) : 0;
  for (int i = 0; i < more; ++i) {
    fairlead::mcp::tool(server, "tool" + std::to_string(i), "Returns the message it was given", &echo);
  }
  return fairlead::mcp::serve_stdio(server);
}
