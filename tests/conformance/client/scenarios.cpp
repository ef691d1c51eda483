#include "scenarios.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace conformance {

namespace {

using Client = blocking::Client;

// ---- what the client offers -----------------------------------------------------------------------------

void nothing(mcp::ClientOptions&) {}

mcp::ElicitResult accepted(std::string_view content) {
  mcp::ElicitResult result;
  result.action = mcp::ElicitResult::Action::accept;
  result.content = json::Raw::trusted(Bytes::constant(content));
  return result;
}

// The library fills in what the form has defaults for.
Task<Result<mcp::ElicitResult>> accept_defaults(std::string, json::Raw) {
  co_return accepted("{}");
}
Task<Result<mcp::ElicitResult>> confirm(std::string, json::Raw) {
  co_return accepted(R"({"confirmed":true})");
}
Task<Result<json::Raw>> sample(json::Raw) {
  co_return json::Raw::trusted(Bytes::constant(
      R"({"role":"assistant","content":{"type":"text","text":"Hello"},"model":"none","stopReason":"endTurn"})"));
}
std::vector<mcp::Root> roots() {
  return {{"file:///home", "home"}};
}

void elicits_defaults(mcp::ClientOptions& options) {
  options.handlers.elicit = accept_defaults;
}
void elicits_confirmation(mcp::ClientOptions& options) {
  options.handlers.elicit = confirm;
}
void offers_everything(mcp::ClientOptions& options) {
  options.handlers.elicit = confirm;
  options.handlers.sample = sample;
  options.handlers.roots = roots;
}

// ---- what it does ---------------------------------------------------------------------------------------

template <class T>
Result<void> outcome(const Result<T>& result) {
  if (!result) return result.error();
  return {};
}

std::string text_of(json::View view) {
  return view.as_string().value_or("");
}

// Does something with each of a list, until that fails.
template <class Do>
Result<void> with_each(const Result<std::vector<json::Raw>>& list, std::string_view member, Do&& act) {
  if (!list) return list.error();
  for (const json::Raw& one : *list) {
    Result<void> done = outcome(act(text_of(json::View(one)[member])));
    if (!done) return done;
  }
  return {};
}

Result<void> list_tools(Client& client, const std::string&) {
  return outcome(client.tools());
}

Result<void> list_and_call(Client& client, std::string_view tool, std::string_view arguments = "{}") {
  const Result<std::vector<json::Raw>> tools = client.tools();
  if (!tools) return tools.error();
  return outcome(client.call_tool(tool, arguments));
}
Result<void> add_numbers(Client& client, const std::string&) {
  return list_and_call(client, "add_numbers", R"({"a":5,"b":3})");
}
Result<void> have_defaults_elicited(Client& client, const std::string&) {
  return list_and_call(client, "test_client_elicitation_defaults");
}
Result<void> come_back_for_the_answer(Client& client, const std::string&) {
  return list_and_call(client, "test_reconnection");
}

Result<void> list_twice(Client& client, const std::string& context) {
  Result<void> listed = list_tools(client, context);
  return listed ? outcome(client.request("tools/list")) : listed;
}

Result<void> carry_state(Client& client, const std::string&) {
  for (const char* tool :
       {"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"}) {
    Result<void> called = outcome(client.call_tool(tool, "{}"));
    if (!called) return called;
  }
  return {};
}

Result<void> use_everything(Client& client, const std::string&) {
  Result<void> used = with_each(client.tools(), "name",
                                [&](const std::string& name) { return client.call_tool(name, "{}"); });
  if (!used) return used;
  used =
      with_each(client.resources(), "uri", [&](const std::string& uri) { return client.read_resource(uri); });
  if (!used) return used;
  return with_each(client.prompts(), "name",
                   [&](const std::string& name) { return client.get_prompt(name); });
}

// The context has the calls to make: {"toolCalls":[{"name":…,"arguments":{…}}]}.
Result<void> make_given_calls(Client& client, const std::string& context) {
  Result<void> made = list_tools(client, context);
  if (!made) return made;
  const Result<json::Raw> given = json::Raw::parse(context);
  if (!given) return given.error();
  json::View(*given)["toolCalls"].each_element([&](json::View call) {
    made = outcome(client.call_tool(text_of(call["name"]), call["arguments"].text()));
    return static_cast<bool>(made);
  });
  return made;
}

// All that are listed: the library leaves out those whose header annotations are invalid.
Result<void> call_every_tool(Client& client, const std::string&) {
  return with_each(client.tools(), "name", [&](const std::string& name) {
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
    return outcome(client.call_tool("json_schema_echo", arguments.text()));
  }
  return Error(ErrorKind::validation, "json_schema_2020_12_tool is not listed");
}

// Nothing is read of what is only listed.
Result<void> list_skills(Client& client, const std::string&) {
  return outcome(client.skills());
}

// The server's entries do not vouch for what it serves, and the library has to notice.
Result<void> refuse_skills(Client& client, const std::string&) {
  const Result<std::vector<mcp::SkillEntry>> skills = client.skills();
  if (!skills) return skills.error();
  for (const mcp::SkillEntry& skill : *skills) {
    for (const mcp::SkillEntry::File& file : skill.files()) {
      const Result<mcp::SkillFile> read = client.read_skill_file(skill, file.uri);
      if (read) return Error(ErrorKind::validation, file.uri + " was not refused");
      std::fprintf(stderr, "refused: %s\n", read.error().message().c_str());
    }
  }
  return {};
}

constexpr std::array kScenarios = {
    Scenario{"initialize", nothing, list_tools},
    Scenario{"tools_call", nothing, add_numbers},
    Scenario{"elicitation-sep1034-client-defaults", elicits_defaults, have_defaults_elicited},
    Scenario{"sse-retry", nothing, come_back_for_the_answer},
    Scenario{"request-metadata", offers_everything, list_twice},
    Scenario{"sep-2322-client-request-state", elicits_confirmation, carry_state},
    Scenario{"http-standard-headers", nothing, use_everything},
    Scenario{"http-custom-headers", nothing, make_given_calls},
    Scenario{"http-invalid-tool-headers", nothing, call_every_tool},
    Scenario{"json-schema-ref-no-deref", nothing, list_tools},
    Scenario{"json-schema-2020-12-preservation", nothing, echo_schema},
    Scenario{"sep-2640-client-no-prefetch", nothing, list_skills},
    Scenario{"sep-2640-client-verify-digest", nothing, refuse_skills},
    Scenario{"sep-2640-client-verify-size", nothing, refuse_skills},
    Scenario{"sep-2640-client-verify-frontmatter", nothing, refuse_skills},
};

}  // namespace

const Scenario* find_scenario(std::string_view name) {
  const auto* const found = std::ranges::find(kScenarios, name, &Scenario::name);
  return found == kScenarios.end() ? nullptr : found;
}

}  // namespace conformance
