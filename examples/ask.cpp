// An MCP server that sends requests to its client: an elicitation for the user's name, and sampling for a
// poem by the client's model. The same handlers serve clients that receive these as requests (revisions up to
// 2025-11-25) and clients that repeat their call with the results (2026-07-28).
#include <fairlead/mcp/serve.hpp>
#include <fairlead/mcp/typed.hpp>

using namespace fairlead;

struct Nothing {};
BOOST_DESCRIBE_STRUCT(Nothing, (), ())

static Task<Result<std::string>> greet(mcp::Context context, Nothing) {
  const json::Raw form = json::Raw::trusted(
      Bytes::constant(R"({"type":"object","properties":{"name":{"type":"string"}},"required":["name"]})"));
  Task<Result<mcp::ElicitResult>> elicitation = context.elicit("Who are you?", form);
  const Result<mcp::ElicitResult> answer = co_await elicitation;
  if (!answer) co_return answer.error();
  if (answer->action != mcp::ElicitResult::Action::accept) co_return std::string("Hello.");
  co_return "Hello, " + json::View(answer->content)["name"].as_string().value_or("") + ".";
}

struct PoemArgs {
  std::string about;
};
BOOST_DESCRIBE_STRUCT(PoemArgs, (), (about))

static Task<Result<std::string>> poem(mcp::Context context, PoemArgs args) {
  json::Writer params;
  params.begin_object()
      .key("maxTokens")
      .integer(200)
      .key("messages")
      .begin_array()
      .begin_object()
      .key("role")
      .string("user");
  params.key("content")
      .raw(mcp::Content::text("A short poem about " + args.about).raw())
      .end_object()
      .end_array()
      .end_object();
  const Result<json::Raw> answer = co_await context.sample(params.finish());
  if (!answer) co_return answer.error();
  co_return json::View(*answer)["content"]["text"].as_string().value_or("");
}

int main() {
  mcp::Server server("ask", "1.0");
  mcp::tool(server, "greet", "Asks for a name and greets", &greet);
  mcp::tool(server, "poem", "Has the client's model write a poem", &poem);
  return mcp::serve_stdio(server);
}
