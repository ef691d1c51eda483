// fairlead inspect, tools, resources, prompts: list the tools, resources and prompts of an MCP server, and
// use one of them.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "cli/mcp_target.hpp"

namespace fairlead::cli {

namespace {

using ClientPtr = std::shared_ptr<mcp::Client>;

std::string string_member(json::View view, std::string_view key) {
  return view[key].as_string().value_or("");
}

void print_list(const McpTarget& target, const std::vector<json::Raw>& entries, std::string_view name) {
  if (target.json) return print_json_array(entries);
  std::vector<std::vector<std::string>> rows;
  for (const json::Raw& entry : entries)
    rows.push_back(
        {string_member(json::View(entry), name), summary(string_member(json::View(entry), "description"))});
  print_table(rows);
}

void print_content(const mcp::Content& content) {
  const std::string type = content.type();
  if (type == "text") {
    print_text_line(content.text());
  } else if (type == "resource" && !content.view()["resource"]["text"].absent()) {
    print_text_line(string_member(content.view()["resource"], "text"));
  } else if (type == "resource_link") {
    print_text_line(string_member(content.view(), "uri"));
  } else {
    print_text_line(
        printable_line("[" + type + (content.mime_type().empty() ? "" : ", " + content.mime_type()) + "]"));
  }
}

// ---- inspect ---------------------------------------------------------------------------------------------

// The numbers of entries as text. "-": the server does not have the capability.
struct EntryCounts {
  std::string tools = "-";
  std::string resources = "-";
  std::string templates = "-";
  std::string prompts = "-";
  std::string skills = "-";
};

Task<std::string> count_entries(ClientPtr client, std::string capability, std::string method,
                                std::string name) {
  if (client->server_capabilities()[capability].absent()) co_return "-";
  const Result<std::vector<json::Raw>> entries = co_await client->list(std::move(method), std::move(name));
  co_return entries ? std::to_string(entries->size()) : "failed: " + entries.error().message();
}

Task<EntryCounts> count_all_entries(ClientPtr client) {
  EntryCounts counts;
  counts.tools = co_await count_entries(client, "tools", "tools/list", "tools");
  Task<std::string> resources = count_entries(client, "resources", "resources/list", "resources");
  counts.resources = co_await resources;
  counts.templates =
      co_await count_entries(client, "resources", "resources/templates/list", "resourceTemplates");
  counts.prompts = co_await count_entries(client, "prompts", "prompts/list", "prompts");
  if (!client->server_extension(mcp::kSkillsExtension).absent()) {
    counts.skills = co_await count_entries(client, "resources", "skills/list", "skills");
  }
  co_return counts;
}

std::string milliseconds(Clock::duration duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f ms", std::chrono::duration<double, std::milli>(duration).count());
  return text;
}

void print_inspection(const mcp::Client& client, const EntryCounts& counts, Clock::duration connected,
                      Clock::duration listed, bool as_json) {
  const std::string era = is_modern(client.revision()) ? "modern" : "legacy";
  if (as_json) {
    json::Writer out;
    out.begin_object().key("era").string(era).key("revision").string(to_string(client.revision()));
    if (!client.server_info().absent()) out.key("server").raw(client.server_info().text());
    if (!client.server_capabilities().absent())
      out.key("capabilities").raw(client.server_capabilities().text());
    for (const auto& [key, value] : {std::pair<const char*, const std::string&>{"tools", counts.tools},
                                     {"resources", counts.resources},
                                     {"resourceTemplates", counts.templates},
                                     {"prompts", counts.prompts},
                                     {"skills", counts.skills}}) {
      out.key(key).string(value);
    }
    out.end_object();
    print_json(out.text());
    return;
  }
  std::string capabilities;
  client.server_capabilities().each_member([&](std::string_view key, bool, json::View) {
    capabilities += (capabilities.empty() ? "" : ", ") + std::string(key);
    return true;
  });
  print_table({{"server", string_member(client.server_info(), "name") + " " +
                              string_member(client.server_info(), "version")},
               {"revision", std::string(to_string(client.revision())) + " (" + era + " era)"},
               {"capabilities", capabilities},
               {"tools", counts.tools},
               {"resources", counts.resources},
               {"templates", counts.templates},
               {"prompts", counts.prompts},
               {"skills", counts.skills},
               {"connected in", milliseconds(connected)},
               {"listed in", milliseconds(listed)}});
}

Task<Result<int>> inspect(const McpTarget& target, Clock::time_point started, ClientPtr client) {
  const Clock::time_point connected = Clock::now();
  target.show_progress("listing");
  const EntryCounts counts = co_await count_all_entries(client);
  target.hide_progress();
  print_inspection(*client, counts, connected - started, Clock::now() - connected, target.json);
  co_return kSuccess;
}

// ---- tools, resources, prompts ---------------------------------------------------------------------------

Task<Result<int>> list_entries(const McpTarget& target, std::string method, std::string name, std::string key,
                               ClientPtr client) {
  target.show_progress("listing " + name);
  const Result<std::vector<json::Raw>> entries = co_await client->list(std::move(method), std::move(name));
  if (!entries) co_return entries.error();
  target.hide_progress();
  print_list(target, *entries, key);
  co_return kSuccess;
}

Task<Result<int>> call_tool(const McpTarget& target, std::string name, json::Raw arguments,
                            ClientPtr client) {
  target.show_progress("calling " + name);
  if (target.json) {
    json::Writer params;
    params.begin_object().key("name").string(name);
    if (!arguments.absent()) params.key("arguments").raw(arguments);
    params.end_object();
    const Result<json::Raw> answer =
        co_await client->request("tools/call", params.finish(), target.call_options());
    if (!answer) co_return answer.error();
    target.hide_progress();
    print_json(answer->text());
    co_return json::View(*answer)["isError"].as_bool().value_or(false) ? kRemoteError : kSuccess;
  }
  const Result<mcp::ToolResult> result =
      co_await client->call_tool(std::move(name), std::move(arguments), target.call_options());
  if (!result) co_return result.error();
  target.hide_progress();
  for (const mcp::Content& content : result->content) print_content(content);
  if (result->content.empty() && !result->structured.absent()) print_json(result->structured.text());
  co_return result->is_error ? kRemoteError : kSuccess;
}

Task<Result<int>> read_resource(const McpTarget& target, std::string uri, json::Raw, ClientPtr client) {
  target.show_progress("reading " + uri);
  if (target.json) {
    json::Writer params;
    params.begin_object().key("uri").string(uri).end_object();
    const Result<json::Raw> answer =
        co_await client->request("resources/read", params.finish(), target.call_options());
    if (!answer) co_return answer.error();
    target.hide_progress();
    print_json(answer->text());
    co_return kSuccess;
  }
  const Result<std::vector<mcp::ResourceContents>> contents = co_await client->read_resource(std::move(uri));
  if (!contents) co_return contents.error();
  target.hide_progress();
  for (const mcp::ResourceContents& content : *contents)
    print_text_line(content.text ? *content.text : content.blob.value_or(""));
  co_return kSuccess;
}

Task<Result<int>> get_prompt(const McpTarget& target, std::string name, json::Raw arguments,
                             ClientPtr client) {
  json::Writer params;
  params.begin_object().key("name").string(name);
  if (!arguments.absent()) params.key("arguments").raw(arguments);
  params.end_object();
  target.show_progress("getting " + name);
  const Result<json::Raw> answer =
      co_await client->request("prompts/get", params.finish(), target.call_options());
  if (!answer) co_return answer.error();
  target.hide_progress();
  if (target.json) {
    print_json(answer->text());
    co_return kSuccess;
  }
  json::View(*answer)["messages"].each_element([&](json::View message) {
    print_text(printable_line(string_member(message, "role")) + ": ");
    print_content(mcp::Content(json::Raw::trusted(answer->bytes().part(message["content"].text()))));
    return true;
  });
  co_return kSuccess;
}

// A command that lists all entries if no name is given. Otherwise it calls the tool, reads the resource or
// gets the prompt with that name.
struct ListOrUseCommand {
  McpTarget target;
  std::string name;
  std::string arguments;

  using EntryAction = Task<Result<int>> (*)(const McpTarget&, std::string name, json::Raw arguments,
                                            ClientPtr);

  int run(const std::string& listed, const std::string& key, EntryAction action) {
    const Result<json::Raw> parsed = parse_json_argument("ARGS", arguments);
    if (!parsed) return report(parsed.error());
    const json::View view(*parsed);
    if (!view.absent() && !view.is(json::Type::object))
      return report(Error(ErrorKind::validation, "ARGS is not a JSON object"));
    return run_with_client(target, [&](ClientPtr client) {
      return name.empty() ? list_entries(target, listed + "/list", listed, key, std::move(client))
                          : action(target, name, *parsed, std::move(client));
    });
  }
};

}  // namespace

void add_inspect(CLI::App& program, int& status) {
  CLI::App* command =
      program.add_subcommand("inspect", "Show the identity, capabilities and entry counts of an MCP server");
  auto target = std::make_shared<McpTarget>();
  target->add_to(*command);
  command->callback([target, &status] {
    const Clock::time_point started = Clock::now();
    status = run_with_client(*target,
                             [&](ClientPtr client) { return inspect(*target, started, std::move(client)); });
  });
}

void add_tools(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand("tools", "List an MCP server's tools, or call one");
  auto options = std::make_shared<ListOrUseCommand>();
  options->target.add_to(*command);
  command->add_option("NAME", options->name, "Tool to call");
  command->add_option("ARGS", options->arguments, "Its arguments as JSON, or - to read them from stdin");
  command->callback([options, &status] { status = options->run("tools", "name", call_tool); });
}

void add_resources(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand("resources", "List an MCP server's resources, or read one");
  auto options = std::make_shared<ListOrUseCommand>();
  options->target.add_to(*command);
  command->add_option("URI", options->name, "Resource to read");
  command->callback([options, &status] { status = options->run("resources", "uri", read_resource); });
}

void add_prompts(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand("prompts", "List an MCP server's prompts, or get one");
  auto options = std::make_shared<ListOrUseCommand>();
  options->target.add_to(*command);
  command->add_option("NAME", options->name, "Prompt to get");
  command->add_option("ARGS", options->arguments,
                      "Its arguments as a JSON object of strings, or - for stdin");
  command->callback([options, &status] { status = options->run("prompts", "name", get_prompt); });
}

}  // namespace fairlead::cli
