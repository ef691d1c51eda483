// fairlead endpoints: the views of the servers that clients connect to.
#include "base/glob.hpp"
#include "cli/patch_builder.hpp"
#include "cli/row_group.hpp"

namespace fairlead::cli {

namespace {

std::string endpoint_path(json::View row) {
  const std::string name = string_of(row, "name");
  return name == "default" ? "/mcp" : "/mcp/e/" + name;
}

struct EndpointRows {
  static RowType type() {
    RowType type;
    type.noun = "endpoint";
    type.plural = "endpoints";
    type.path = "/endpoints";
    type.empty_hint = "No endpoints. Add one: fairlead endpoints add NAME --server PATTERN";
    type.columns = {member_column("NAME", "name"),
                    {"PATH", endpoint_path},
                    member_column("MODE", "mode"),
                    yes_no_column("ENABLED", "enabled"),
                    member_column("SERVERS", "servers"),
                    member_column("TAGS", "tags"),
                    member_column("DESCRIPTION", "description")};
    return type;
  }
};

// Warns of patterns that match no server.
Task<void> warn_of_unmatched_patterns(AdminClientPtr client, std::vector<std::string> patterns) {
  if (patterns.empty()) co_return;
  const Result<std::vector<json::Raw>> servers = co_await client->list("/mcp/servers");
  if (!servers) co_return;
  for (const std::string& pattern : patterns) {
    const bool matches = std::ranges::any_of(*servers, [&](const json::Raw& row) {
      return glob_matches(pattern, string_of(json::View(row), "name"));
    });
    if (!matches) print_warning("no server has a name that matches `" + pattern + "`");
  }
}

struct EndpointFields {
  std::string title, description, mode, enabled;
  std::vector<std::string> servers, tags, tools, deny, pinned, users, groups, set, unset;

  void add_to(CLI::App& app) {
    const auto list = [&](const char* name, std::vector<std::string>& values, const char* help,
                          const char* type) {
      app.add_option(name, values, help)->type_name(type)->take_all()->allow_extra_args(false);
    };
    app.add_option("--title", title, "Title for people");
    app.add_option("--description", description, "What the endpoint is for");
    app.add_option("--mode", mode, "direct lists the tools, discover lists tools that find them")
        ->check(CLI::IsMember({"direct", "discover"}));
    app.add_option("--enabled", enabled, "Whether clients can use the endpoint")
        ->check(CLI::IsMember({"true", "false"}));
    list("--server", servers, "Servers of the endpoint, by name; * matches any text; repeatable", "PATTERN");
    list("--tag", tags, "Servers of the endpoint, by tag; repeatable", "TAG");
    list("--tool", tools, "Only tools whose public name matches; repeatable", "PATTERN");
    list("--deny-tool", deny, "Without tools whose public name matches; repeatable", "PATTERN");
    list("--pin", pinned, "Tools that the mode discover lists too; repeatable", "PATTERN");
    list("--user", users, "Users who may use the endpoint; repeatable", "USER");
    list("--group", groups, "Groups whose members may use the endpoint; repeatable", "GROUP");
    list("--set", set, "Any other member; repeatable", "MEMBER=VALUE");
    list("--unset", unset, "Remove a member, such as users; repeatable", "MEMBER");
  }

  bool empty() const {
    const std::size_t lists = servers.size() + tags.size() + tools.size() + deny.size() + pinned.size() +
                              users.size() + groups.size() + set.size() + unset.size();
    return (title + description + mode + enabled).empty() && lists == 0;
  }

  void set_members(PatchBuilder& body) const {
    for (const auto& [member, value] :
         {std::pair("title", &title), std::pair("description", &description), std::pair("mode", &mode)}) {
      if (!value->empty()) body.set_string({member}, *value);
    }
    if (!enabled.empty()) body.set({"enabled"}, json::Raw::trusted(Bytes::copy_of(enabled), true));
    for (const auto& [member, values] :
         {std::pair("servers", &servers), std::pair("tags", &tags), std::pair("tools", &tools),
          std::pair("deny", &deny), std::pair("pinned", &pinned)}) {
      if (!values->empty()) body.set_strings({member}, *values);
    }
    for (const std::string& member : unset) body.remove(split_member_path(member));
  }

  static Task<Result<json::Raw>> body(const EndpointFields& fields, AdminClientPtr client, std::string name) {
    PatchBuilder body;
    if (!name.empty()) body.set_string({"name"}, name);
    fields.set_members(body);
    for (const std::string& assignment : fields.set) {
      const Result<void> added = body.set_assignment("--set", assignment);
      if (!added) co_return added.error();
    }
    if (!fields.users.empty()) {
      const Result<json::Raw> ids = co_await ids_of(client, "/users", fields.users);
      if (!ids) co_return ids.error();
      body.set({"users"}, *ids);
    }
    if (!fields.groups.empty()) {
      const Result<json::Raw> ids = co_await ids_of(client, "/groups", fields.groups);
      if (!ids) co_return ids.error();
      body.set({"groups"}, *ids);
    }
    co_await warn_of_unmatched_patterns(client, fields.servers);
    co_return body.finish();
  }
};

}  // namespace

void add_endpoints(CLI::App& program, int& status) {
  CLI::App& group =
      command_group(program, "endpoints", "Manage the endpoints: views of the servers for clients");
  add_row_group<EndpointRows, EndpointFields>(group, status);
}

}  // namespace fairlead::cli
