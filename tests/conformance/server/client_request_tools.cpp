// Tools that send sampling and elicitation requests to the client.
#include "fixture.hpp"

namespace conformance {

namespace {

struct PromptArgs {
  std::string prompt;
};
BOOST_DESCRIBE_STRUCT(PromptArgs, (), (prompt))
struct MessageArgs {
  std::string message;
};
BOOST_DESCRIBE_STRUCT(MessageArgs, (), (message))

constexpr std::string_view kUserForm = R"({
  "type": "object",
  "properties": {
    "username": {"type": "string", "description": "User's response"},
    "email": {"type": "string", "description": "User's email address"}
  },
  "required": ["username", "email"]
})";

constexpr std::string_view kDefaultsForm = R"({
  "type": "object",
  "properties": {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": true}
  },
  "required": []
})";

constexpr std::string_view kEnumsForm = R"({
  "type": "object",
  "properties": {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {
      "type": "string",
      "oneOf": [
        {"const": "value1", "title": "First Option"},
        {"const": "value2", "title": "Second Option"},
        {"const": "value3", "title": "Third Option"}
      ]
    },
    "legacyEnum": {
      "type": "string",
      "enum": ["opt1", "opt2", "opt3"],
      "enumNames": ["Option One", "Option Two", "Option Three"]
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {
      "type": "array",
      "items": {
        "anyOf": [
          {"const": "value1", "title": "First Choice"},
          {"const": "value2", "title": "Second Choice"},
          {"const": "value3", "title": "Third Choice"}
        ]
      }
    }
  },
  "required": []
})";

std::string_view name_of(mcp::ElicitResult::Action action) {
  switch (action) {
    case mcp::ElicitResult::Action::accept: return "accept";
    case mcp::ElicitResult::Action::decline: return "decline";
    case mcp::ElicitResult::Action::cancel: return "cancel";
  }
  return "";
}

// Elicits the form, and returns the user's action and content as text.
Task<Result<std::string>> elicit_and_describe(mcp::Context context, std::string message, json::Raw form,
                                              std::string prefix) {
  const Result<mcp::ElicitResult> answer = co_await context.elicit(std::move(message), std::move(form));
  if (!answer) co_return answer.error();
  const std::string_view content = answer->content.absent() ? "{}" : answer->content.text();
  co_return prefix + "action=" + std::string(name_of(answer->action)) + ", content=" + std::string(content);
}

Task<Result<std::string>> sampling(mcp::Context context, PromptArgs args) {
  const Result<json::Raw> answer = co_await context.sample(sampling_params(args.prompt, 100));
  if (!answer) co_return answer.error();
  co_return "LLM response: " + json::View(*answer)["content"]["text"].as_string().value_or("No response");
}

Task<Result<std::string>> elicitation(mcp::Context context, MessageArgs args) {
  return elicit_and_describe(std::move(context), std::move(args.message), constant_json(kUserForm),
                             "User response: ");
}
Task<Result<std::string>> defaults(mcp::Context context, NoArguments) {
  return elicit_and_describe(std::move(context), "Please review and update the form fields with defaults",
                             constant_json(kDefaultsForm), "Elicitation completed: ");
}
Task<Result<std::string>> enums(mcp::Context context, NoArguments) {
  return elicit_and_describe(std::move(context), "Please select options from the enum fields",
                             constant_json(kEnumsForm), "Elicitation completed: ");
}
Task<Result<std::string>> streaming_elicitation(mcp::Context context, NoArguments) {
  return elicit_and_describe(std::move(context), "Shall we go on?", form_schema("confirm", "boolean"),
                             "Elicitation completed: ");
}
Task<Result<std::string>> missing_capability(mcp::Context context, NoArguments) {
  return sampling(std::move(context), PromptArgs{"Only clients that support sampling receive this"});
}

}  // namespace

json::Raw form_schema(std::string_view member, std::string_view type) {
  json::Writer out;
  out.begin_object().key("type").string("object");
  out.key("properties").begin_object().key(member).begin_object().key("type").string(type);
  out.end_object().end_object();
  out.key("required").begin_array().string(member).end_array().end_object();
  return out.finish();
}

json::Raw sampling_params(std::string_view text, int max_tokens) {
  json::Writer out;
  out.begin_object().key("messages").begin_array();
  out.begin_object().key("role").string("user").key("content").raw(mcp::Content::text(text).raw());
  out.end_object().end_array();
  out.key("maxTokens").integer(max_tokens).end_object();
  return out.finish();
}

void add_asking_tools(mcp::Server& server) {
  mcp::tool(server, "test_sampling", "Asks the client's model", &sampling);
  mcp::tool(server, "test_elicitation", "Asks the client's user", &elicitation);
  mcp::tool(server, "test_elicitation_sep1034_defaults", "Has a form filled in that has defaults", &defaults);
  mcp::tool(server, "test_elicitation_sep1330_enums", "Has a form filled in that has choices", &enums);
  mcp::tool(server, "test_streaming_elicitation", "Asks the user to confirm", &streaming_elicitation);
  mcp::tool(server, "test_missing_capability", "Needs sampling", &missing_capability);
}

}  // namespace conformance
