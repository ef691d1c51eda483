// fairlead tools, resources, prompts: list the tools, resources and prompts of an MCP server, and
// use one of them.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "base/suggestion.hpp"
#include "cli/call_arguments.hpp"
#include "cli/mcp_target.hpp"
#include "cli/tool_description.hpp"
#include "fairlead/gateway/gateway.hpp"
#include "fairlead/loop/timer.hpp"

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

// ---- tools, resources, prompts ---------------------------------------------------------------------------

// Returns the `_meta` of the first page of a list if the server is a gateway that lacks the lists of some of
// its servers; otherwise absent. Called before the list is requested: a server that is listed in between is
// reported as missing, but no missing one is overlooked.
Task<json::Raw> incomplete_list_meta(std::string method, ClientPtr client) {
  if (client->server_info()["name"].as_string() != "fairlead") co_return json::Raw();
  const Result<json::Raw> page = co_await client->request(std::move(method));
  const json::View meta = page ? json::View(*page)["_meta"] : json::View();
  if (meta[gateway::kIncompleteKey].size() == 0) co_return json::Raw();
  co_return json::Raw::trusted(page->bytes().part(meta.text()));
}

// Prints to stderr which servers are missing from a list, if any are. Returns the exit status of the command.
int report_incomplete_list(const json::Raw& meta, bool list_is_empty) {
  if (meta.absent()) return kSuccess;
  std::string names;
  json::View(meta)[gateway::kIncompleteKey].each_element([&](json::View server) {
    const std::string name = server.as_string().value_or("");
    if (is_server_name(name)) names += (names.empty() ? "" : ", ") + name;
    return true;
  });
  if (names.empty()) return kSuccess;
  const std::string first = names.substr(0, names.find(", "));
  const std::string others = json::View(meta)[gateway::kIncompleteOthersKey].absent() ? "" : ", …";
  std::fprintf(stderr,
               "fairlead: the list is incomplete, because the gateway has no list of: %s%s\n"
               "remedy: See why with `fairlead servers test %s`.\n",
               names.c_str(), others.c_str(), first.c_str());
  return list_is_empty ? kRemoteError : kSuccess;
}

Task<Result<int>> list_entries(const McpTarget& target, std::string method, std::string name, std::string key,
                               ClientPtr client) {
  target.show_progress("listing " + name);
  const json::Raw incomplete = co_await incomplete_list_meta(method, client);
  const Result<std::vector<json::Raw>> entries = co_await client->list(std::move(method), std::move(name));
  if (!entries) co_return entries.error();
  target.hide_progress();
  print_list(target, *entries, key);
  co_return report_incomplete_list(incomplete, entries->empty());
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

Task<Result<int>> read_resource(const McpTarget& target, std::string uri, ClientPtr client) {
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
  std::vector<std::string> argument_words;
  CallArguments arguments;  // parsed from argument_words
  bool templates = false;   // list the resource templates
  bool schema = false;      // describe the tool instead of calling it

  using ActionFunction = Task<Result<int>> (*)(const ListOrUseCommand&, ClientPtr);

  int run(const ActionFunction action) {
    Result<CallArguments> parsed = CallArguments::parse(argument_words);
    if (!parsed) return report(parsed.error());
    arguments = std::move(*parsed);
    return run_with_client(target, [&](ClientPtr client) { return action(*this, std::move(client)); });
  }
};

// ---- tools -----------------------------------------------------------------------------------------------

// How often, and for how long at most, the tools of a server that a gateway has not listed yet are looked
// for.
constexpr std::chrono::milliseconds kUnlistedServerInterval{100};
constexpr std::chrono::milliseconds kMaxUnlistedServerWait{10'000};

// If the server is a gateway that has not fetched the tools of the server of this tool, for example because
// the server was added a moment ago, returns the name of that server.
Task<std::optional<std::string>> unlisted_server(std::string tool, ClientPtr client) {
  const Result<json::Raw> page = co_await client->request("tools/list", json::Raw());
  std::optional<std::string> found;
  if (!page) co_return found;
  json::View(*page)["_meta"][gateway::kIncompleteKey].each_element([&](json::View server) {
    std::string name = server.as_string().value_or("");
    if (!name.empty() && tool.starts_with(name + "__")) found = std::move(name);
    return !found;
  });
  co_return found;
}

Error unknown_tool_error(const std::string& name, const std::vector<std::string>& names,
                         const std::optional<std::string>& unlisted) {
  if (unlisted) {
    Error error(ErrorKind::validation,
                "the gateway does not have the tools of the server `" + *unlisted + "` yet");
    return std::move(error).with([&](ErrorDetail& detail) {
      detail.remedy = "See why with `fairlead servers test " + *unlisted + "`.";
    });
  }
  const std::string_view closest = closest_word(name, names);
  return Error(ErrorKind::validation,
               "the server has no tool `" + name + "`" +
                   (closest.empty() ? "" : " (did you mean `" + std::string(closest) + "`?)"));
}

// Returns the definition of a tool. Fails with `validation` if the server has no tool with this name.
Task<Result<json::Raw>> find_tool(const McpTarget& target, std::string name, ClientPtr client) {
  const Clock::time_point give_up = Clock::now() + std::min(target.timeout, kMaxUnlistedServerWait);
  std::vector<std::string> names;
  std::optional<std::string> unlisted;
  do {
    target.show_progress("listing tools");
    if (unlisted) co_await sleep_for(*target.client_loop, kUnlistedServerInterval);
    const Result<std::vector<json::Raw>> tools = co_await client->list("tools/list", "tools");
    if (!tools) co_return tools.error();
    names.clear();
    for (const json::Raw& tool : *tools) {
      names.push_back(string_member(json::View(tool), "name"));
      if (names.back() == name) co_return tool;
    }
    unlisted = co_await unlisted_server(name, client);
  } while (unlisted && Clock::now() < give_up);
  co_return unknown_tool_error(name, names, unlisted);
}

Task<Result<int>> describe_tools(const ListOrUseCommand& command, ClientPtr client) {
  const McpTarget& target = command.target;
  std::vector<json::Raw> tools;
  json::Raw incomplete;
  if (command.name.empty()) {
    target.show_progress("listing tools");
    incomplete = co_await incomplete_list_meta("tools/list", client);
    Result<std::vector<json::Raw>> all = co_await client->list("tools/list", "tools");
    if (!all) co_return all.error();
    tools = std::move(*all);
  } else {
    Result<json::Raw> tool = co_await find_tool(target, command.name, client);
    if (!tool) co_return tool.error();
    tools.push_back(std::move(*tool));
  }
  target.hide_progress();
  if (target.json) {
    print_json_array(tools);
  } else {
    for (std::size_t i = 0; i < tools.size(); ++i)
      print_text((i == 0 ? "" : "\n") + describe_tool(json::View(tools[i]), target.uri));
  }
  co_return report_incomplete_list(incomplete, tools.empty());
}

Task<Result<int>> use_tools(const ListOrUseCommand& command, ClientPtr client) {
  if (command.schema) {
    const Result<int> described = co_await describe_tools(command, std::move(client));
    co_return described;
  }
  if (command.name.empty()) {
    const Result<int> listed =
        co_await list_entries(command.target, "tools/list", "tools", "name", std::move(client));
    co_return listed;
  }
  json::Raw tool;
  if (command.arguments.needs_schema()) {
    Result<json::Raw> found = co_await find_tool(command.target, command.name, client);
    if (!found) co_return found.error();
    tool = std::move(*found);
  }
  Result<json::Raw> arguments = command.arguments.for_tool(json::View(tool)["inputSchema"]);
  if (!arguments) co_return arguments.error();
  const Result<int> called =
      co_await call_tool(command.target, command.name, std::move(*arguments), std::move(client));
  co_return called;
}

// ---- resources, prompts ----------------------------------------------------------------------------------

Task<Result<int>> use_resources(const ListOrUseCommand& command, ClientPtr client) {
  if (command.templates)
    return list_entries(command.target, "resources/templates/list", "resourceTemplates", "uriTemplate",
                        std::move(client));
  if (command.name.empty())
    return list_entries(command.target, "resources/list", "resources", "uri", std::move(client));
  return read_resource(command.target, command.name, std::move(client));
}

Task<Result<int>> use_prompts(const ListOrUseCommand& command, ClientPtr client) {
  if (command.name.empty()) {
    const Result<int> listed =
        co_await list_entries(command.target, "prompts/list", "prompts", "name", std::move(client));
    co_return listed;
  }
  Result<json::Raw> arguments = command.arguments.for_prompt();
  if (!arguments) co_return arguments.error();
  const Result<int> got =
      co_await get_prompt(command.target, command.name, std::move(*arguments), std::move(client));
  co_return got;
}

}  // namespace

void add_tools(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand("tools", "List an MCP server's tools, or call one");
  auto options = std::make_shared<ListOrUseCommand>();
  options->target.add_to(*command);
  command->add_option("NAME", options->name, "Tool to call");
  command->add_option("ARGS", options->argument_words,
                      "Its arguments: key=value (converted to the type in the tool's schema), key:=JSON, or "
                      "one JSON object, or - to read the object from stdin");
  command->add_flag("--schema,--help-tool", options->schema,
                    "Describe the tool and its arguments instead of calling it; without NAME: all tools");
  command->callback([options, &status] { status = options->run(use_tools); });
}

void add_resources(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand("resources", "List an MCP server's resources, or read one");
  auto options = std::make_shared<ListOrUseCommand>();
  options->target.add_to(*command);
  auto* const uri = command->add_option("URI", options->name, "Resource to read");
  command->add_flag("--templates", options->templates, "List the resource templates")->excludes(uri);
  command->callback([options, &status] { status = options->run(use_resources); });
}

void add_prompts(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand("prompts", "List an MCP server's prompts, or get one");
  auto options = std::make_shared<ListOrUseCommand>();
  options->target.add_to(*command);
  command->add_option("NAME", options->name, "Prompt to get");
  command->add_option("ARGS", options->argument_words,
                      "Its arguments: key=value, or one JSON object of strings, or - to read it from stdin");
  command->callback([options, &status] { status = options->run(use_prompts); });
}

}  // namespace fairlead::cli
