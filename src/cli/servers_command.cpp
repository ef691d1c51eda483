// fairlead servers list, show, add, edit, enable, disable, remove: the rows of the servers.
#include "cli/servers_command.hpp"

#include <CLI/CLI.hpp>
#include <map>

#include "cli/output.hpp"
#include "cli/server_options.hpp"
#include "cli/terminal.hpp"

namespace fairlead::cli {

namespace {

constexpr std::string_view kMasked = "***";

// Returns what the server is: its command line, or its URL.
std::string server_transport_text(json::View row) {
  const json::View config = row["config"];
  std::string text = string_of(config, "url");
  if (!text.empty()) return text;
  text = string_of(config, "command");
  config["args"].each_element([&](json::View argument) {
    text += " " + argument.as_string().value_or("");
    return true;
  });
  return text;
}

using StateMap = std::map<std::string, std::string>;

// The states from best to worst; of several processes of a server the worst is shown.
int severity(const std::string& state) {
  for (const auto& [name, rank] :
       {std::pair("failed", 3), std::pair("degraded", 2), std::pair("starting", 1)}) {
    if (state == name) return rank;
  }
  return 0;
}

// Returns the states of the servers in the health report; none if there is no report.
Task<StateMap> server_states(AdminClientPtr client) {
  StateMap states;
  if (client->direct()) co_return states;
  AdminRequest request("GET", "/health");
  request.outside_api = true;
  const Result<AdminReply> report = co_await client->send(std::move(request));
  if (!report) co_return states;
  json::View(report->body)["servers"].each_element([&](json::View entry) {
    const std::string state = string_of(entry, "status");
    std::string& known = states[string_of(entry, "name")];
    if (known.empty() || severity(state) > severity(known)) known = state;
    return true;
  });
  co_return states;
}

struct ServersList {
  AdminOptions options;
  std::string name, tag, domain, visibility;

  void add_to(CLI::App& app) {
    app.add_option("NAME", name, "Only servers whose name matches; * matches any text");
    app.add_option("--tag", tag, "Only servers with this tag");
    app.add_option("--domain", domain, "Only servers of this domain");
    app.add_option("--visibility", visibility, "Only servers of this visibility")
        ->check(CLI::IsMember({"hidden", "visible", "user"}));
  }
  static Task<Result<int>> run(const ServersList& command, AdminClientPtr client) {
    std::string query;
    add_query(query, "name", command.name);
    add_query(query, "tag", command.tag);
    add_query(query, "domain", command.domain);
    add_query(query, "visibility", command.visibility);
    StateMap states;
    const bool with_states = !command.options.json && !command.options.quiet;
    if (with_states) states = co_await server_states(client);
    const RowType type = server_rows([&states](const std::string& server) {
      const auto found = states.find(server);
      return found == states.end() ? std::string("-") : found->second;
    });
    const Result<int> listed = co_await list_rows(command.options, type, client, query);
    co_return listed;
  }
};

// Replaces values that are no references such as ${secret:NAME}.
void write_masked(json::Writer& writer, json::View values) {
  writer.begin_object();
  values.each_member([&](std::string_view key, bool escaped, json::View value) {
    const std::string text = value.as_string().value_or("");
    writer.key(escaped ? json::unescape(key) : std::string(key));
    writer.string(text.find("${") == std::string::npos ? kMasked : std::string_view(text));
    return true;
  });
  writer.end_object();
}

json::Raw masked_row(json::View row) {
  const auto copy = [](json::Writer& writer, json::View object, const auto& special) {
    writer.begin_object();
    object.each_member([&](std::string_view key, bool escaped, json::View value) {
      const std::string name = escaped ? json::unescape(key) : std::string(key);
      writer.key(name);
      if (!special(name, value)) writer.raw(value.text());
      return true;
    });
    writer.end_object();
  };
  json::Writer writer;
  copy(writer, row, [&](const std::string& member, json::View config) {
    if (member != "config" || !config.is(json::Type::object)) return false;
    copy(writer, config, [&](const std::string& key, json::View values) {
      if ((key != "env" && key != "headers") || !values.is(json::Type::object)) return false;
      write_masked(writer, values);
      return true;
    });
    return true;
  });
  return writer.finish();
}

struct ServersShow {
  AdminOptions options;
  std::string name;
  bool reveal = false;

  void add_to(CLI::App& app) {
    app.add_option("NAME", name, "Name or id of the server")->required();
    app.add_flag("--reveal", reveal, "Show the values of variables and headers too, which may be secret");
  }
  static Task<Result<int>> run(const ServersShow& command, AdminClientPtr client) {
    const Result<json::Raw> row = co_await client->get(server_rows().row_path(command.name));
    if (!row) co_return row.error();
    const bool whole = command.reveal || command.options.json;
    print_row(command.options, whole ? *row : masked_row(json::View(*row)));
    if (whole) co_return kSuccess;
    const StateMap states = co_await server_states(client);
    const auto found = states.find(string_of(json::View(*row), "name"));
    if (found != states.end()) print_text_line("state: " + printable_line(found->second));
    co_return kSuccess;
  }
};

// Replaces the name of an owner by the id.
Task<Result<void>> resolve_owner(AdminClientPtr client, ServerOptions& server) {
  if (server.owner.empty()) co_return Result<void>();
  Result<std::string> id = co_await id_of(client, "/users", server.owner);
  if (!id) co_return id.error();
  server.owner = std::move(*id);
  co_return Result<void>();
}

// Returns the JSON on stdin if the only argument is "-".
bool reads_stdin(const std::vector<std::string>& words) {
  return words.size() == 1 && words.front() == "-";
}

struct ServersAdd {
  AdminOptions options;
  std::string name;
  ServerOptions server;

  void add_to(CLI::App& app) {
    app.add_option("NAME", name, "Name of the server, or - to read the row as JSON from stdin")->required();
    server.add_to(app);
    app.footer(
        "Examples:\n"
        "  fairlead servers add files -- npx -y @modelcontextprotocol/server-filesystem /srv/project\n"
        "  fairlead servers add git --env 'TOKEN=${secret:GIT_TOKEN}' -- uvx mcp-server-git\n"
        "  fairlead servers add docs --url https://mcp.example.com/mcp --tag docs\n"
        "  fairlead servers add --json - < server.json");
  }
  static Task<Result<int>> run(const ServersAdd& command, AdminClientPtr client) {
    ServerOptions server = command.server;
    const Result<void> resolved = co_await resolve_owner(client, server);
    if (!resolved) co_return resolved.error();
    if (command.name != "-" && reads_stdin(server.command))
      co_return Error(ErrorKind::validation,
                      "`-` after a name would ignore the name: the row on stdin has its own. Write `fairlead "
                      "servers add -`");
    const bool from_stdin = command.name == "-";
    const Result<json::Raw> body = from_stdin ? parse_json_argument("stdin", "-") : server.body(command.name);
    if (!body) co_return body.error();
    const Result<int> added = co_await add_row(command.options, server_rows(), client, *body);
    if (added && !command.options.json && stdout_is_terminal())
      print_note(command.options, "Test it: fairlead servers test " + string_of(json::View(*body), "name"));
    co_return added;
  }
};

struct ServersEdit {
  AdminOptions options;
  std::string name;
  ServerOptions server;

  void add_to(CLI::App& app) {
    app.add_option("NAME", name, "Name or id of the server")->required();
    server.add_to(app);
    app.footer(
        "Without options, the row is opened in $EDITOR. With - instead of COMMAND, a merge patch (RFC 7396)\n"
        "is read from stdin.");
  }
  static Task<Result<int>> run(const ServersEdit& command, AdminClientPtr client) {
    if (command.server.empty()) {
      const Result<int> edited = co_await edit_row(command.options, server_rows(), client, command.name);
      co_return edited;
    }
    ServerOptions server = command.server;
    const Result<void> resolved = co_await resolve_owner(client, server);
    if (!resolved) co_return resolved.error();
    const Result<json::Raw> patch =
        reads_stdin(server.command) ? parse_json_argument("stdin", "-") : server.body(std::string());
    if (!patch) co_return patch.error();
    const Result<int> changed =
        co_await patch_row(command.options, server_rows(), client, command.name, *patch);
    co_return changed;
  }
};

Task<Result<int>> set_enabled(const AdminOptions& options, AdminClientPtr client,
                              std::vector<std::string> names, bool enabled) {
  for (const std::string& name : names) {
    json::Writer patch;
    patch.begin_object().key("enabled").boolean(enabled).end_object();
    const Result<json::Raw> row = co_await client->patch(server_rows().row_path(name), patch.finish());
    if (!row) co_return row.error();
    print_change(options, std::string(enabled ? "Enabled" : "Disabled") + " the server `" + name + "`.",
                 *row);
  }
  co_return kSuccess;
}

template <bool Enabled>
struct ServersSetEnabled {
  AdminOptions options;
  std::vector<std::string> names;

  void add_to(CLI::App& app) { app.add_option("NAME", names, "Names or ids of the servers")->required(); }
  static Task<Result<int>> run(const ServersSetEnabled& command, AdminClientPtr client) {
    return set_enabled(command.options, std::move(client), command.names, Enabled);
  }
};

struct ServersRemove {
  AdminOptions options;
  std::vector<std::string> names;

  void add_to(CLI::App& app) {
    app.add_option("NAME", names, "Names or ids of the servers")->required();
    options.add_yes_to(app);
  }
  static Task<Result<int>> run(const ServersRemove& command, AdminClientPtr client) {
    return remove_rows(command.options, server_rows(), std::move(client), command.names);
  }
};

}  // namespace

RowType server_rows(std::function<std::string(const std::string& name)> state_of) {
  RowType type;
  type.noun = "server";
  type.plural = "servers";
  type.path = "/mcp/servers";
  type.empty_hint = "No servers. Add one: fairlead servers add NAME -- COMMAND ARG…";
  type.columns = {member_column("NAME", "name"),
                  {"STATE",
                   [state_of = std::move(state_of)](json::View row) {
                     if (!row["enabled"].as_bool().value_or(true)) return std::string("disabled");
                     return state_of ? state_of(string_of(row, "name")) : std::string();
                   }},
                  member_column("VISIBILITY", "visibility"),
                  member_column("TAGS", "tags"),
                  {"COMMAND OR URL", server_transport_text}};
  return type;
}

RowType server_rows() {
  return server_rows(nullptr);
}

void add_server_rows_commands(CLI::App& servers, int& status) {
  add_admin_command<ServersList>(servers, "list", "List the servers", status);
  add_admin_command<ServersShow>(servers, "show", "Show a server", status);
  add_admin_command<ServersAdd>(servers, "add", "Add a server", status);
  add_admin_command<ServersEdit>(servers, "edit", "Change a server", status);
  add_admin_command<ServersSetEnabled<true>>(servers, "enable", "Offer servers again", status);
  add_admin_command<ServersSetEnabled<false>>(servers, "disable", "Stop servers and do not offer their tools",
                                              status);
  add_admin_command<ServersRemove>(servers, "remove", "Remove servers", status);
}

void add_servers(CLI::App& program, int& status) {
  CLI::App& servers = command_group(program, "servers", kServersDescription);
  add_server_rows_commands(servers, status);
  add_server_test_commands(servers, status);
  add_server_import_command(servers, status);
  add_server_export_command(servers, status);
  add_server_operation_commands(servers, status);
}

}  // namespace fairlead::cli
