// fairlead servers refresh, restart, stop, tools: servers at run time.
#include <CLI/CLI.hpp>

#include "base/printable.hpp"
#include "cli/output.hpp"
#include "cli/servers_command.hpp"
#include "cli/table.hpp"

namespace fairlead::cli {

namespace {

std::string count_of(json::View value, const std::string& noun) {
  const std::size_t count = value.size();
  return std::to_string(count) + " " + noun;
}

void print_names(std::string_view sign, json::View names) {
  names.each_element([&](json::View name) {
    print_text_line("  " + std::string(sign) + " " + printable_line(name.as_string().value_or("")));
    return true;
  });
}

void print_refreshed(const AdminOptions& options, const std::string& server, json::View result) {
  if (options.quiet) return;
  print_text_line(printable_line(server) + ": " + one_line(result["tools"]) + " tools, " +
                  count_of(result["added"], "added") + ", " + count_of(result["removed"], "removed") + ", " +
                  count_of(result["changed"], "changed"));
  print_names("+", result["added"]);
  print_names("-", result["removed"]);
  print_names("~", result["changed"]);
}

struct ServersRefresh {
  AdminOptions options;
  std::vector<std::string> names;

  void add_to(CLI::App& app) { app.add_option("NAME", names, "Names or ids of the servers")->required(); }
  static Task<Result<int>> run(const ServersRefresh& command, AdminClientPtr client) {
    const Result<void> running = client->require_gateway("refreshing a server");
    if (!running) co_return running.error();
    for (const std::string& name : command.names) {
      std::shared_ptr<ProgressLine> progress = command.options.show_progress(*client, "refreshing " + name);
      const Result<json::Raw> result = co_await client->post(server_rows().row_path(name) + "/refresh");
      progress.reset();
      if (!result) co_return result.error();
      if (command.options.json) print_json(result->text());
      if (!command.options.json) print_refreshed(command.options, name, json::View(*result));
    }
    co_return kSuccess;
  }
};

struct StateChange {
  StateChange(const char* path, const char* doing_text, const char* done_text)
      : operation(path), doing(doing_text), done(done_text) {}

  std::string operation, doing, done;  // "restart", "restarting", "Restarted"
};

// Restarts or stops servers.
Task<Result<int>> change_state(const AdminOptions& options, AdminClientPtr client,
                               std::vector<std::string> names, StateChange change) {
  const Result<void> running = client->require_gateway("this command");
  if (!running) co_return running.error();
  for (const std::string& name : names) {
    std::shared_ptr<ProgressLine> progress = options.show_progress(*client, change.doing + " " + name);
    const Result<json::Raw> result =
        co_await client->post(server_rows().row_path(name) + "/" + change.operation);
    progress.reset();
    if (!result) co_return result.error();
    const std::string state = string_of(json::View(*result), "state");
    print_change(options, change.done + " the server `" + name + "`: " + state + ".", *result);
  }
  co_return kSuccess;
}

struct ServersRestart {
  AdminOptions options;
  std::vector<std::string> names;

  void add_to(CLI::App& app) { app.add_option("NAME", names, "Names or ids of the servers")->required(); }
  static Task<Result<int>> run(const ServersRestart& command, AdminClientPtr client) {
    return change_state(command.options, std::move(client), command.names,
                        StateChange("restart", "restarting", "Restarted"));
  }
};

struct ServersStop {
  AdminOptions options;
  std::vector<std::string> names;

  void add_to(CLI::App& app) {
    app.add_option("NAME", names, "Names or ids of the servers")->required();
    app.footer("The next call starts a server again; `fairlead servers disable` keeps it stopped.");
  }
  static Task<Result<int>> run(const ServersStop& command, AdminClientPtr client) {
    return change_state(command.options, std::move(client), command.names,
                        StateChange("stop", "stopping", "Stopped"));
  }
};

// ---- tools -----------------------------------------------------------------------------------------------

std::string tool_state(json::View tool) {
  std::string state;
  for (const char* const flag : {"quarantined", "denied", "hidden"}) {
    if (tool[flag].as_bool().value_or(false)) state += (state.empty() ? "" : ", ") + std::string(flag);
  }
  if (const std::string reason = string_of(tool, "omitted"); !reason.empty())
    state += (state.empty() ? "" : ", ") + std::string("omitted: ") + reason;
  return state.empty() ? "offered" : state;
}

RowType tool_rows() {
  RowType type;
  type.noun = "tool";
  type.plural = "tools";
  type.path = "/tools";
  type.name = "publicName";
  type.empty_hint =
      "No tools are known. Fetch them: fairlead servers refresh NAME, and see why one fails: fairlead "
      "servers "
      "test NAME";
  type.columns = {member_column("TOOL", "publicName"),
                  {"STATE", tool_state},
                  {"DESCRIPTION", [](json::View tool) { return summary(string_of(tool, "description")); }}};
  return type;
}

struct ServersTools {
  AdminOptions options;
  std::string name;
  std::string pattern;

  void add_to(CLI::App& app) {
    app.add_option("NAME", name, "Name or id of a server; without it, the tools of all");
    app.add_option("--tool", pattern, "Only tools whose name matches; * matches any text")
        ->type_name("PATTERN");
  }
  static Task<Result<int>> run(const ServersTools& command, AdminClientPtr client) {
    RowType type = tool_rows();
    if (!command.name.empty()) type.path = server_rows().row_path(command.name) + "/tools";
    std::string query;
    add_query(query, "name", command.pattern);
    const Result<int> listed = co_await list_rows(command.options, type, client, query);
    co_return listed;
  }
};

}  // namespace

void add_server_operation_commands(CLI::App& servers, int& status) {
  add_admin_command<ServersRefresh>(servers, "refresh", "Fetch the tools of servers now", status);
  add_admin_command<ServersRestart>(servers, "restart", "Stop the processes of servers, and start one again",
                                    status);
  add_admin_command<ServersStop>(servers, "stop", "Stop the processes of servers until the next call",
                                 status);
  add_admin_command<ServersTools>(servers, "tools", "List the tools of a server, or of all", status);
}

}  // namespace fairlead::cli
