// fairlead demo: an MCP server with a few typed tools, a resource and a prompt. `fairlead serve` without a
// configuration is a gateway for this server.
#include <CLI/CLI.hpp>

#include "cli/common.hpp"
#include "fairlead/mcp/serve.hpp"
#include "fairlead/mcp/typed.hpp"

namespace fairlead::cli {

namespace {

struct EchoArgs {
  std::string message;
};
BOOST_DESCRIBE_STRUCT(EchoArgs, (), (message))

struct AddArgs {
  double a;
  double b;
};
BOOST_DESCRIBE_STRUCT(AddArgs, (), (a, b))

struct Sum {
  double sum;
};
BOOST_DESCRIBE_STRUCT(Sum, (), (sum))

struct CountArgs {
  int to;
};
BOOST_DESCRIBE_STRUCT(CountArgs, (), (to))

constexpr const char* kAbout =
    "Fairlead puts many MCP servers behind one endpoint. This built-in server is a demonstration.\n"
    "Configure your own servers in a file and run `fairlead serve --config FILE`.\n";

Task<Result<std::vector<mcp::ResourceContents>>> read_about(mcp::Context, std::string uri,
                                                            mcp::Server::Variables) {
  std::vector<mcp::ResourceContents> contents;
  contents.push_back(mcp::ResourceContents{std::move(uri), "text/plain", kAbout, {}});
  co_return contents;
}

Task<Result<mcp::PromptResult>> greet(mcp::Context, mcp::Server::Variables arguments) {
  mcp::PromptResult prompt;
  prompt.messages.push_back({"user", mcp::Content::text("Say hello to " + arguments["name"] + ".")});
  co_return prompt;
}

int execute() {
  if (const std::optional<Error> missing = missing_stdio_error()) return report(*missing);
  mcp::Server server("fairlead-demo", FAIRLEAD_VERSION);
  mcp::ToolAnnotations read_only;
  read_only.read_only = true;
  mcp::tool(
      server, "echo", "Returns the message", [](const EchoArgs& in) { return in.message; }, read_only);
  mcp::tool(
      server, "add", "Adds two numbers", [](const AddArgs& in) { return Sum{in.a + in.b}; }, read_only);
  mcp::tool(
      server, "count", "Counts and reports progress",
      [](const mcp::Context& context, const CountArgs& in) {
        for (int i = 1; i <= in.to; ++i) context.report_progress(i, in.to);
        return "counted to " + std::to_string(in.to);
      },
      read_only);

  mcp::ResourceSpec about;
  about.uri = "demo://about";
  about.name = "About this server";
  about.mime_type = "text/plain";
  mcp::PromptSpec greeting;
  greeting.name = "greet";
  greeting.description = "A greeting";
  greeting.arguments = {{"name", "", "Whom to greet", true}};
  const Result<void> resource = server.add_resource(about, read_about);
  const Result<void> prompt = server.add_prompt(greeting, greet);
  if (!resource) return report(resource.error());
  if (!prompt) return report(prompt.error());
  return mcp::serve_stdio(server) == 0 ? kSuccess : kNotConnected;
}

}  // namespace

void add_demo(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "demo", "Run the demo server that `fairlead serve` uses without a config, on stdin and stdout");
  command->callback([&status] { status = execute(); });
}

}  // namespace fairlead::cli
