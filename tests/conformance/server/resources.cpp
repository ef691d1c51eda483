// Resources and prompts.
#include "fixture.hpp"

namespace conformance {

namespace {

using Contents = std::vector<mcp::ResourceContents>;
using Variables = mcp::Server::Variables;

// ---- resources ------------------------------------------------------------------------------------------

Contents text_contents(std::string uri, std::string mime_type, std::string text) {
  return Contents(1, mcp::ResourceContents{std::move(uri), std::move(mime_type), std::move(text), {}});
}

Task<Result<Contents>> read_text(mcp::Context, std::string uri, Variables) {
  co_return text_contents(std::move(uri), "text/plain", "This is the content of the static text resource.");
}
Task<Result<Contents>> read_binary(mcp::Context, std::string uri, Variables) {
  co_return Contents(1, mcp::ResourceContents{std::move(uri), "image/png", {}, std::string(kPngBase64)});
}
Task<Result<Contents>> read_watched(mcp::Context, std::string uri, Variables) {
  co_return text_contents(std::move(uri), "text/plain", "Watched resource content");
}
Task<Result<Contents>> read_templated(mcp::Context, std::string uri, Variables variables) {
  const std::string id = variables["id"];
  json::Writer out;
  out.begin_object().key("id").string(id).key("templateTest").boolean(true);
  out.key("data").string("Data for ID: " + id).end_object();
  co_return text_contents(std::move(uri), "application/json", out.text());
}

mcp::ResourceSpec resource(std::string uri, std::string name, std::string description,
                           std::string mime_type) {
  mcp::ResourceSpec spec;
  spec.uri = std::move(uri);
  spec.name = std::move(name);
  spec.description = std::move(description);
  spec.mime_type = std::move(mime_type);
  return spec;
}

// ---- prompts --------------------------------------------------------------------------------------------

using PromptTask = Task<Result<mcp::PromptResult>>;

mcp::PromptResult user_prompt(std::vector<mcp::Content> contents) {
  mcp::PromptResult prompt;
  for (mcp::Content& content : contents) prompt.messages.push_back({"user", std::move(content)});
  return prompt;
}

PromptTask simple(mcp::Context, Variables) {
  co_return user_prompt({mcp::Content::text("This is a simple prompt for testing.")});
}
PromptTask with_arguments(mcp::Context, Variables arguments) {
  co_return user_prompt({mcp::Content::text("Prompt with arguments: arg1='" + arguments["arg1"] +
                                            "', arg2='" + arguments["arg2"] + "'")});
}
PromptTask with_resource(mcp::Context, Variables arguments) {
  co_return user_prompt({mcp::Content::embedded_text(arguments["resourceUri"], "text/plain",
                                                     "Embedded resource content for testing."),
                         mcp::Content::text("Please process the embedded resource above.")});
}
PromptTask with_image(mcp::Context, Variables) {
  co_return user_prompt(
      {mcp::Content::image(kPngBase64, "image/png"), mcp::Content::text("Please analyze the image above.")});
}
PromptTask with_input(mcp::Context context, Variables) {
  Task<Result<mcp::ElicitResult>> pending =
      context.elicit("What context should the prompt use?", form_schema("context", "string"), "user_context");
  const Result<mcp::ElicitResult> answer = co_await pending;
  if (!answer) co_return answer.error();
  co_return user_prompt({mcp::Content::text(
      "Use this context: " + json::View(answer->content)["context"].as_string().value_or("none"))});
}

mcp::CompletionResult complete(const std::string&, const std::string&, const Variables&) {
  mcp::CompletionResult no_match;
  no_match.total = 0;
  return no_match;
}

mcp::PromptSpec prompt(std::string name, std::string description,
                       std::vector<mcp::PromptArgument> arguments = {}) {
  mcp::PromptSpec spec;
  spec.name = std::move(name);
  spec.description = std::move(description);
  spec.arguments = std::move(arguments);
  return spec;
}

mcp::PromptArgument required(std::string name, std::string description) {
  return mcp::PromptArgument{std::move(name), {}, std::move(description), true};
}

}  // namespace

void add_resources(mcp::Server& server) {
  require_success(
      server.add_resource(resource("test://static-text", "static-text", "A text", "text/plain"), read_text));
  require_success(server.add_resource(
      resource("test://static-binary", "static-binary", "An image", "image/png"), read_binary));
  require_success(server.add_resource(
      resource("test://watched-resource", "watched-resource", "One to subscribe to", "text/plain"),
      read_watched));
  require_success(server.add_resource_template(
      resource("test://template/{id}/data", "template", "Data by id", "application/json"), read_templated));
}

void add_prompts(mcp::Server& server) {
  require_success(server.add_prompt(prompt("test_simple_prompt", "Without arguments"), simple));
  require_success(server.add_prompt(
      prompt("test_prompt_with_arguments", "With two arguments",
             {required("arg1", "First test argument"), required("arg2", "Second test argument")}),
      with_arguments, complete));
  require_success(server.add_prompt(prompt("test_prompt_with_embedded_resource", "With a resource in it",
                                           {required("resourceUri", "URI of the resource to embed")}),
                                    with_resource));
  require_success(server.add_prompt(prompt("test_prompt_with_image", "With an image in it"), with_image));
  require_success(
      server.add_prompt(prompt("test_input_required_result_prompt", "Asks before it answers"), with_input));
}

}  // namespace conformance
