// Tools that require input as in revision 2026-07-28: the result contains input requests, and the client
// repeats its request with the input responses. Each input request has the key that the suite responds to.
#include <fairlead/loop/all.hpp>

#include "fixture.hpp"

namespace conformance {

namespace {

using ElicitOutcome = Result<mcp::ElicitResult>;
using Roots = Result<std::vector<mcp::Root>>;

std::string text_of(const mcp::ElicitResult& answer, std::string_view member) {
  return json::View(answer.content)[member].as_string().value_or("unknown");
}
std::string text_of(const json::Raw& sampled) {
  return json::View(sampled)["content"]["text"].as_string().value_or("nothing");
}

Task<ElicitOutcome> ask_name(const mcp::Context& context) {
  return context.elicit("What is your name?", form_schema("name", "string"), "user_name");
}

Task<Result<std::string>> elicit_name(mcp::Context context, NoArguments) {
  const ElicitOutcome name = co_await ask_name(context);
  if (!name) co_return name.error();
  co_return "Hello, " + text_of(*name, "name") + "!";
}

Task<Result<std::string>> sample_capital(mcp::Context context, NoArguments) {
  Task<Result<json::Raw>> pending =
      context.sample(sampling_params("What is the capital of France?", 100), "capital_question");
  const Result<json::Raw> answer = co_await pending;
  if (!answer) co_return answer.error();
  co_return text_of(*answer);
}

Task<Result<std::string>> list_roots(mcp::Context context, NoArguments) {
  const Roots roots = co_await context.roots("client_roots");
  if (!roots) co_return roots.error();
  std::string all = std::to_string(roots->size()) + " roots:";
  for (const mcp::Root& root : *roots) all += " " + root.uri;
  co_return all;
}

// The library seals the request state that the client sends back in the second round. When this handler
// resumes, the state has been verified.
Task<Result<std::string>> request_state(mcp::Context context, NoArguments) {
  const ElicitOutcome confirmed =
      co_await context.elicit("Please confirm", form_schema("ok", "boolean"), "confirm");
  if (!confirmed) co_return confirmed.error();
  co_return std::string("state-ok");
}

Task<Result<std::string>> multiple_inputs(mcp::Context context, NoArguments) {
  auto pending =
      all(ask_name(context), context.sample(sampling_params("Generate a greeting", 50), "greeting"),
          context.roots("client_roots"));
  const auto [name, greeting, roots] = co_await pending;
  if (!name) co_return name.error();
  if (!greeting) co_return greeting.error();
  if (!roots) co_return roots.error();
  co_return text_of(*greeting) + ", " + text_of(*name, "name") + " with " + std::to_string(roots->size()) +
      " roots";
}

Task<Result<std::string>> multi_round(mcp::Context context, NoArguments) {
  Task<ElicitOutcome> pending =
      context.elicit("Step 1: What is your name?", form_schema("name", "string"), "step1");
  const ElicitOutcome name = co_await pending;
  if (!name) co_return name.error();
  Task<ElicitOutcome> second_elicitation =
      context.elicit("Step 2: What is your favorite color?", form_schema("color", "string"), "step2");
  const ElicitOutcome color = co_await second_elicitation;
  if (!color) co_return color.error();
  co_return text_of(*name, "name") + " likes " + text_of(*color, "color");
}

// Uses elicitation if the client supports it, otherwise sampling.
Task<Result<std::string>> capabilities(mcp::Context context, NoArguments) {
  const bool has_user = !context.client_capabilities()["elicitation"].absent();
  return has_user ? elicit_name(std::move(context), NoArguments())
                  : sample_capital(std::move(context), NoArguments());
}

}  // namespace

void add_input_tools(mcp::Server& server) {
  const std::string prefix = "test_input_required_result_";
  mcp::tool(server, prefix + "elicitation", "Asks for a name", &elicit_name);
  mcp::tool(server, prefix + "sampling", "Asks the model", &sample_capital);
  mcp::tool(server, prefix + "list_roots", "Asks for the roots", &list_roots);
  mcp::tool(server, prefix + "request_state", "Has the client carry state", &request_state);
  mcp::tool(server, prefix + "multiple_inputs", "Asks three questions in one round", &multiple_inputs);
  mcp::tool(server, prefix + "multi_round", "Asks two questions in two rounds", &multi_round);
  mcp::tool(server, prefix + "tampered_state", "Notices when the state was changed", &request_state);
  mcp::tool(server, prefix + "capabilities", "Asks what the client can answer", &capabilities);
}

}  // namespace conformance
