// What the official conformance suite expects a server to have: its tools, resources and prompts, by topic.
#pragma once

#include <fairlead/mcp/typed.hpp>

namespace conformance {

using namespace fairlead;  // NOLINT: a program of its own

struct Nothing {};
BOOST_DESCRIBE_STRUCT(Nothing, (), ())

// A pixel, and a moment of silence.
inline constexpr std::string_view kPng =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
inline constexpr std::string_view kWav = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

// JSON written down in the program.
inline json::Raw json_text(std::string_view constant) {
  return json::Raw::trusted(Bytes::constant(constant));
}
// For what only fails when the program is wrong.
inline void must(const Result<void>& added) {
  if (!added) throw std::invalid_argument(added.error().message());
}
// A form with one member, as elicitation has them.
json::Raw form(std::string_view member, std::string_view type);
// The parameters of a sampling request with one message.
json::Raw one_message(std::string_view text, int max_tokens);

void add_content_tools(mcp::Server& server);  // the first one takes no arguments: the suite calls it
void add_asking_tools(mcp::Server& server);
void add_input_tools(mcp::Server& server);
void add_task_tools(mcp::Server& server);
void add_resources(mcp::Server& server);
void add_prompts(mcp::Server& server);
void add_skills(mcp::Server& server);

}  // namespace conformance
