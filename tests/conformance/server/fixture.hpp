// The tools, resources and prompts that the official conformance suite expects a server to have, by topic.
#pragma once

#include <fairlead/mcp/typed.hpp>

namespace conformance {

using namespace fairlead;  // NOLINT: a program of its own

struct NoArguments {};
BOOST_DESCRIBE_STRUCT(NoArguments, (), ())

// An image of one pixel, and a short silent sound.
inline constexpr std::string_view kPngBase64 =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
inline constexpr std::string_view kWavBase64 = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

// Returns a JSON value from a string literal, which is not validated.
inline json::Raw constant_json(std::string_view constant) {
  return json::Raw::trusted(Bytes::constant(constant));
}
// Throws if `added` has failed, which only an error in this program can cause.
inline void require_success(const Result<void>& added) {
  if (!added) throw std::invalid_argument(added.error().message());
}
// Returns the schema of an elicitation form with one field.
json::Raw form_schema(std::string_view member, std::string_view type);
// Returns the params of a sampling request with one message.
json::Raw sampling_params(std::string_view text, int max_tokens);

void add_content_tools(mcp::Server& server);  // the first tool has no arguments, because the suite calls it
void add_asking_tools(mcp::Server& server);
void add_input_tools(mcp::Server& server);
void add_task_tools(mcp::Server& server);
void add_resources(mcp::Server& server);
void add_prompts(mcp::Server& server);
void add_skills(mcp::Server& server);

}  // namespace conformance
