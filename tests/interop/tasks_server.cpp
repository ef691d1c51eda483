// tasks_server: an MCP server on stdin and stdout whose tools run as tasks, for tests of clients of other
// projects.
#include <fairlead/mcp/serve.hpp>
#include <fairlead/mcp/typed.hpp>

using namespace fairlead;

namespace {

struct NoArguments {};
BOOST_DESCRIBE_STRUCT(NoArguments, (), ())

Task<Result<std::string>> greet(mcp::Context context, NoArguments) {
  const Result<json::Raw> form =
      json::Raw::parse(R"({"type":"object","properties":{"name":{"type":"string"}}})");
  Task<Result<mcp::ElicitResult>> elicitation = context.elicit("Who?", *form);
  const Result<mcp::ElicitResult> who = co_await elicitation;
  if (!who) co_return who.error();
  co_return "Hello, " + json::View(who->content)["name"].as_string().value_or("") + "!";
}

Task<Result<std::string>> wait(mcp::Context context, NoArguments) {
  co_await context.sleep(std::chrono::hours(1));
  co_return std::string("done");
}

}  // namespace

int main() {
  mcp::Server server("tasks", "1");
  mcp::TaskOptions options;
  options.poll_interval = std::chrono::milliseconds(30);
  server.tasks(options);
  mcp::tool(server, "greet", "Asks and greets", &greet, mcp::ToolAnnotations(), mcp::TaskSupport::required);
  mcp::tool(server, "wait", "Waits until it is cancelled", &wait, mcp::ToolAnnotations(),
            mcp::TaskSupport::required);
  return mcp::serve_stdio(server);
}
