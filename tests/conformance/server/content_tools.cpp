// Tools that need no input of the client: every kind of content, progress, log messages, errors and schemas.
#include "fixture.hpp"

namespace conformance {

namespace {

using namespace std::chrono_literals;
constexpr std::chrono::milliseconds kStepTime = 50ms;
constexpr std::chrono::milliseconds kDisconnectedTime = 100ms;

struct RegionArgs {
  std::optional<std::string> region;
};
BOOST_DESCRIBE_STRUCT(RegionArgs, (), (region))

mcp::ToolResult single_content(mcp::Content content) {
  mcp::ToolResult result;
  result.content.push_back(std::move(content));
  return result;
}

mcp::ToolResult multiple_content_types(const NoArguments&) {
  mcp::ToolResult result = mcp::ToolResult::text("Multiple content types test:");
  result.content.push_back(mcp::Content::image(kPngBase64, "image/png"));
  result.content.push_back(mcp::Content::embedded_text("test://mixed-content-resource", "application/json",
                                                       R"({"test":"data","value":123})"));
  return result;
}

std::string fail(const NoArguments&) {
  throw mcp::ToolError("This tool intentionally returns an error for testing");
}

Task<Result<std::string>> with_logging(mcp::Context context, NoArguments) {
  context.log(mcp::LoggingLevel::info, json::string("Tool execution started"));
  co_await context.sleep(kStepTime);
  context.log(mcp::LoggingLevel::info, json::string("Tool processing data"));
  co_await context.sleep(kStepTime);
  context.log(mcp::LoggingLevel::info, json::string("Tool execution completed"));
  co_return "Tool with logging executed successfully";
}

Task<Result<std::string>> with_progress(mcp::Context context, NoArguments) {
  context.report_progress(0, 100);
  co_await context.sleep(kStepTime);
  context.report_progress(50, 100);
  co_await context.sleep(kStepTime);
  context.report_progress(100, 100);
  co_return "Tool with progress executed successfully";
}

// Closes the stream to the client, which has to reconnect to receive the result.
Task<Result<std::string>> reconnection(mcp::Context context, NoArguments) {
  context.close_stream();
  co_await context.sleep(kDisconnectedTime);
  co_return "Reconnection test completed successfully";
}

// Adds an entry and removes it at once: clients are notified of a list change, but the list is the same.
mcp::ToolResult change_tools(mcp::Server& server) {
  mcp::tool(server, "test_passing", "Is gone before anybody sees it",
            [](const NoArguments&) { return "passed"; });
  server.remove_tool("test_passing");
  return mcp::ToolResult::text("The list of tools has changed");
}
mcp::ToolResult change_prompts(mcp::Server& server) {
  mcp::PromptSpec spec;
  spec.name = "test_passing";
  const Result<void> added =
      server.add_prompt(spec, [](mcp::Context, mcp::Server::Variables) -> Task<Result<mcp::PromptResult>> {
        co_return mcp::PromptResult();
      });
  if (!added) return mcp::ToolResult::error(added.error().message());
  server.remove_prompt("test_passing");
  return mcp::ToolResult::text("The list of prompts has changed");
}

constexpr std::string_view kSchema2020_12 = R"({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "$defs": {
    "address": {
      "$anchor": "addressDef",
      "type": "object",
      "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
    }
  },
  "properties": {
    "name": {"type": "string"},
    "address": {"$ref": "#/$defs/address"},
    "contactMethod": {"type": "string", "enum": ["phone", "email"]},
    "phone": {"type": "string"},
    "email": {"type": "string"}
  },
  "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
  "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
  "then": {"required": ["phone"]},
  "else": {"required": ["email"]},
  "additionalProperties": false
})";

constexpr std::string_view kHeaderSchema = R"({
  "type": "object",
  "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}
})";

// Adds a tool with an input schema that cannot be derived from a C++ type.
template <class F>
void tool_with_schema(mcp::Server& server, std::string name, std::string description, std::string_view schema,
                      F function) {
  mcp::ToolSpec spec;
  spec.name = std::move(name);
  spec.description = std::move(description);
  spec.input_schema = constant_json(schema);
  require_success(server.add_tool(std::move(spec), mcp::Server::PlainTool(std::move(function))));
}

}  // namespace

void add_content_tools(mcp::Server& server) {
  mcp::tool(server, "test_simple_text", "Text",
            [](const NoArguments&) { return "This is a simple text response for testing."; });
  mcp::tool(server, "test_image_content", "An image",
            [](const NoArguments&) { return single_content(mcp::Content::image(kPngBase64, "image/png")); });
  mcp::tool(server, "test_audio_content", "A sound",
            [](const NoArguments&) { return single_content(mcp::Content::audio(kWavBase64, "audio/wav")); });
  mcp::tool(server, "test_embedded_resource", "A resource", [](const NoArguments&) {
    return single_content(mcp::Content::embedded_text("test://embedded-resource", "text/plain",
                                                      "This is an embedded resource content."));
  });
  mcp::tool(server, "test_multiple_content_types", "Text, an image and a resource", &multiple_content_types);
  mcp::tool(server, "test_tool_with_logging", "Logs while it runs", &with_logging);
  mcp::tool(server, "test_tool_with_progress", "Tells how far it is", &with_progress);
  mcp::tool(server, "test_error_handling", "Fails", &fail);
  mcp::tool(server, "test_reconnection", "Has the client come back for the answer", &reconnection);
  mcp::tool(server, "test_logging_tool", "Logs once", [](const mcp::Context& context, const NoArguments&) {
    context.log(mcp::LoggingLevel::info, json::string("Logged by test_logging_tool"));
    return "Logged, if anybody asked for it";
  });
  mcp::tool(server, "test_trigger_tool_change", "Changes the list of tools",
            [&server](const NoArguments&) { return change_tools(server); });
  mcp::tool(server, "test_trigger_prompt_change", "Changes the list of prompts",
            [&server](const NoArguments&) { return change_prompts(server); });
  tool_with_schema(
      server, "json_schema_2020_12_tool", "Has a schema with everything in it", kSchema2020_12,
      [](const mcp::Context&, json::View) { return mcp::ToolResult::text("It fits the schema"); });
  tool_with_schema(
      server, "test_x_mcp_header", "Has an argument that is sent in a header, too", kHeaderSchema,
      [](const mcp::Context&, json::View arguments) {
        return mcp::ToolResult::text("Region: " + arguments["region"].as_string().value_or("none"));
      });
}

}  // namespace conformance
