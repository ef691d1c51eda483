// conformance-server --port P: an MCP server with the tools, resources and prompts that the official
// conformance suite requires, at http://localhost:P/mcp.
#include <fairlead/mcp/serve.hpp>

#include <cstdio>
#include <string_view>

#include "fixture.hpp"

int main(int argc, char** argv) {
  using namespace fairlead;  // NOLINT: a program of its own
  if (argc != 3 || std::string_view(argv[1]) != "--port") {
    std::fprintf(stderr, "usage: conformance-server --port P   (0: any)\n");
    return 2;
  }
  mcp::Server server("fairlead-conformance-server", "1.0.0");
  conformance::add_content_tools(server);
  conformance::add_asking_tools(server);
  conformance::add_input_tools(server);
  conformance::add_task_tools(server);
  conformance::add_resources(server);
  conformance::add_prompts(server);
  conformance::add_skills(server);
  mcp::HttpOptions options;
  options.on_listening = [](const std::string& url) {
    std::printf("listening on %s\n", url.c_str());
    std::fflush(stdout);
  };
  return mcp::serve_http(server, std::string("localhost:") + argv[2], options);
}
