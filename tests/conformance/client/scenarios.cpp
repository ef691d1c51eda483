#include "scenarios.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace conformance {

namespace {

using Client = blocking::Client;

// ---- options --------------------------------------------------------------------------------------------

void no_options(mcp::ClientOptions&) {}

mcp::ElicitResult accepted_form(std::string_view content) {
  mcp::ElicitResult result;
  result.action = mcp::ElicitResult::Action::accept;
  result.content = json::Raw::trusted(Bytes::constant(content));
  return result;
}

// The library sets the fields of the form that have defaults.
Task<Result<mcp::ElicitResult>> accept_defaults(std::string, json::Raw) {
  co_return accepted_form("{}");
}
Task<Result<mcp::ElicitResult>> confirm(std::string, json::Raw) {
  co_return accepted_form(R"({"confirmed":true})");
}
Task<Result<json::Raw>> sample(json::Raw) {
  co_return json::Raw::trusted(Bytes::constant(
      R"({"role":"assistant","content":{"type":"text","text":"Hello"},"model":"none","stopReason":"endTurn"})"));
}
std::vector<mcp::Root> roots() {
  return {{"file:///home", "home"}};
}

void add_elicit_defaults(mcp::ClientOptions& options) {
  options.handlers.elicit = accept_defaults;
}
void add_elicit_confirm(mcp::ClientOptions& options) {
  options.handlers.elicit = confirm;
}
void add_all_handlers(mcp::ClientOptions& options) {
  options.handlers.elicit = confirm;
  options.handlers.sample = sample;
  options.handlers.roots = roots;
}

// ---- calls ----------------------------------------------------------------------------------------------

template <class T>
Result<void> without_value(const Result<T>& result) {
  if (!result) return result.error();
  return {};
}

std::string text_of(json::View view) {
  return view.as_string().value_or("");
}

// Calls `action` with the member `member` of each entry, until an action fails.
template <class Action>
Result<void> for_each_entry(const Result<std::vector<json::Raw>>& list, std::string_view member,
                            Action&& action) {
  if (!list) return list.error();
  for (const json::Raw& entry : *list) {
    Result<void> done = without_value(action(text_of(json::View(entry)[member])));
    if (!done) return done;
  }
  return {};
}

Result<void> list_tools(Client& client, const std::string&) {
  return without_value(client.tools());
}

Result<void> list_and_call(Client& client, std::string_view tool, std::string_view arguments = "{}") {
  const Result<std::vector<json::Raw>> tools = client.tools();
  if (!tools) return tools.error();
  return without_value(client.call_tool(tool, arguments));
}
Result<void> add_numbers(Client& client, const std::string&) {
  return list_and_call(client, "add_numbers", R"({"a":5,"b":3})");
}
Result<void> call_elicitation_tool(Client& client, const std::string&) {
  return list_and_call(client, "test_client_elicitation_defaults");
}
Result<void> call_reconnection_tool(Client& client, const std::string&) {
  return list_and_call(client, "test_reconnection");
}

Result<void> list_twice(Client& client, const std::string& context) {
  Result<void> listed = list_tools(client, context);
  return listed ? without_value(client.request("tools/list")) : listed;
}

Result<void> call_request_state_tools(Client& client, const std::string&) {
  for (const char* tool :
       {"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"}) {
    Result<void> called = without_value(client.call_tool(tool, "{}"));
    if (!called) return called;
  }
  return {};
}

Result<void> use_all_entries(Client& client, const std::string&) {
  Result<void> used = for_each_entry(client.tools(), "name",
                                     [&](const std::string& name) { return client.call_tool(name, "{}"); });
  if (!used) return used;
  used = for_each_entry(client.resources(), "uri",
                        [&](const std::string& uri) { return client.read_resource(uri); });
  if (!used) return used;
  return for_each_entry(client.prompts(), "name",
                        [&](const std::string& name) { return client.get_prompt(name); });
}

// The context has the calls to make: {"toolCalls":[{"name":…,"arguments":{…}}]}.
Result<void> make_calls_of_context(Client& client, const std::string& context) {
  Result<void> made = list_tools(client, context);
  if (!made) return made;
  const Result<json::Raw> parsed = json::Raw::parse(context);
  if (!parsed) return parsed.error();
  json::View(*parsed)["toolCalls"].each_element([&](json::View call) {
    made = without_value(client.call_tool(text_of(call["name"]), call["arguments"].text()));
    return static_cast<bool>(made);
  });
  return made;
}

// Calls all tools in the list. The library omits the tools whose header annotations are invalid.
Result<void> call_every_tool(Client& client, const std::string&) {
  return for_each_entry(client.tools(), "name", [&](const std::string& name) {
    return client.call_tool(name, R"({"region":"us-west1"})");
  });
}

Result<void> echo_schema(Client& client, const std::string&) {
  const Result<std::vector<json::Raw>> tools = client.tools();
  if (!tools) return tools.error();
  for (const json::Raw& tool : *tools) {
    if (text_of(json::View(tool)["name"]) != "json_schema_2020_12_tool") continue;
    json::Writer arguments;
    arguments.begin_object().key("schema").raw(json::View(tool)["inputSchema"].text()).end_object();
    return without_value(client.call_tool("json_schema_echo", arguments.text()));
  }
  return Error(ErrorKind::validation, "json_schema_2020_12_tool is not listed");
}

// Lists the skills and reads none of their files.
Result<void> list_skills(Client& client, const std::string&) {
  return without_value(client.skills());
}

// The files that the server returns do not match the entries in its list. The library must reject them.
Result<void> expect_skills_rejected(Client& client, const std::string&) {
  const Result<std::vector<mcp::SkillEntry>> skills = client.skills();
  if (!skills) return skills.error();
  for (const mcp::SkillEntry& skill : *skills) {
    for (const mcp::SkillEntry::File& file : skill.files()) {
      const Result<mcp::SkillFile> read = client.read_skill_file(skill, file.uri);
      if (read) return Error(ErrorKind::validation, file.uri + " was not rejected");
      std::fprintf(stderr, "rejected: %s\n", read.error().message().c_str());
    }
  }
  return {};
}

constexpr std::array kScenarios = {
    Scenario{"initialize", no_options, list_tools},
    Scenario{"tools_call", no_options, add_numbers},
    Scenario{"elicitation-sep1034-client-defaults", add_elicit_defaults, call_elicitation_tool},
    Scenario{"sse-retry", no_options, call_reconnection_tool},
    Scenario{"request-metadata", add_all_handlers, list_twice},
    Scenario{"sep-2322-client-request-state", add_elicit_confirm, call_request_state_tools},
    Scenario{"http-standard-headers", no_options, use_all_entries},
    Scenario{"http-custom-headers", no_options, make_calls_of_context},
    Scenario{"http-invalid-tool-headers", no_options, call_every_tool},
    Scenario{"json-schema-ref-no-deref", no_options, list_tools},
    Scenario{"json-schema-2020-12-preservation", no_options, echo_schema},
    Scenario{"sep-2640-client-no-prefetch", no_options, list_skills},
    Scenario{"sep-2640-client-verify-digest", no_options, expect_skills_rejected},
    Scenario{"sep-2640-client-verify-size", no_options, expect_skills_rejected},
    Scenario{"sep-2640-client-verify-frontmatter", no_options, expect_skills_rejected},
};

}  // namespace

const Scenario* find_scenario(std::string_view name) {
  const auto* const found = std::ranges::find(kScenarios, name, &Scenario::name);
  return found == kScenarios.end() ? nullptr : found;
}

}  // namespace conformance
