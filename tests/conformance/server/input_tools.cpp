// Tools that ask the way of 2026-07-28: the client carries the questions and repeats its request with the
// answers. Each question has the name that the suite answers to.
#include <fairlead/loop/all.hpp>

#include "fixture.hpp"

namespace conformance {

namespace {

using Elicited = Result<mcp::ElicitResult>;
using Roots = Result<std::vector<mcp::Root>>;

std::string text_of(const mcp::ElicitResult& answer, std::string_view member) {
  return json::View(answer.content)[member].as_string().value_or("nobody");
}
std::string text_of(const json::Raw& sampled) {
  return json::View(sampled)["content"]["text"].as_string().value_or("nothing");
}

Task<Elicited> ask_name(const mcp::Context& context) {
  return context.elicit("What is your name?", form("name", "string"), "user_name");
}

Task<Result<std::string>> asks_user(mcp::Context context, Nothing) {
  Task<Elicited> asking = ask_name(context);
  const Elicited name = co_await asking;
  if (!name) co_return name.error();
  co_return "Hello, " + text_of(*name, "name") + "!";
}

Task<Result<std::string>> asks_model(mcp::Context context, Nothing) {
  Task<Result<json::Raw>> asking =
      context.sample(one_message("What is the capital of France?", 100), "capital_question");
  const Result<json::Raw> answer = co_await asking;
  if (!answer) co_return answer.error();
  co_return text_of(*answer);
}

Task<Result<std::string>> list_roots(mcp::Context context, Nothing) {
  Task<Roots> asking = context.roots("client_roots");
  const Roots roots = co_await asking;
  if (!roots) co_return roots.error();
  std::string all = std::to_string(roots->size()) + " roots:";
  for (const mcp::Root& root : *roots) all += " " + root.uri;
  co_return all;
}

// The library seals what the client carries between two rounds; a handler that goes on has seen it verified.
Task<Result<std::string>> request_state(mcp::Context context, Nothing) {
  Task<Elicited> asking = context.elicit("Please confirm", form("ok", "boolean"), "confirm");
  const Elicited confirmed = co_await asking;
  if (!confirmed) co_return confirmed.error();
  co_return std::string("state-ok");
}

Task<Result<std::string>> multiple_inputs(mcp::Context context, Nothing) {
  auto asking = all(ask_name(context), context.sample(one_message("Generate a greeting", 50), "greeting"),
                    context.roots("client_roots"));
  const auto [name, greeting, roots] = co_await asking;
  if (!name) co_return name.error();
  if (!greeting) co_return greeting.error();
  if (!roots) co_return roots.error();
  co_return text_of(*greeting) + ", " + text_of(*name, "name") + " with " + std::to_string(roots->size()) +
      " roots";
}

Task<Result<std::string>> multi_round(mcp::Context context, Nothing) {
  Task<Elicited> asking = context.elicit("Step 1: What is your name?", form("name", "string"), "step1");
  const Elicited name = co_await asking;
  if (!name) co_return name.error();
  Task<Elicited> asking_again =
      context.elicit("Step 2: What is your favorite color?", form("color", "string"), "step2");
  const Elicited color = co_await asking_again;
  if (!color) co_return color.error();
  co_return text_of(*name, "name") + " likes " + text_of(*color, "color");
}

// Asks in whichever way the client can answer.
Task<Result<std::string>> capabilities(mcp::Context context, Nothing) {
  const bool has_user = !context.client_capabilities()["elicitation"].absent();
  return has_user ? asks_user(std::move(context), Nothing()) : asks_model(std::move(context), Nothing());
}

}  // namespace

void add_input_tools(mcp::Server& server) {
  const std::string prefix = "test_input_required_result_";
  mcp::tool(server, prefix + "elicitation", "Asks for a name", &asks_user);
  mcp::tool(server, prefix + "sampling", "Asks the model", &asks_model);
  mcp::tool(server, prefix + "list_roots", "Asks for the roots", &list_roots);
  mcp::tool(server, prefix + "request_state", "Has the client carry state", &request_state);
  mcp::tool(server, prefix + "multiple_inputs", "Asks three questions in one round", &multiple_inputs);
  mcp::tool(server, prefix + "multi_round", "Asks two questions in two rounds", &multi_round);
  mcp::tool(server, prefix + "tampered_state", "Notices when the state was changed", &request_state);
  mcp::tool(server, prefix + "capabilities", "Asks what the client can answer", &capabilities);
}

}  // namespace conformance
