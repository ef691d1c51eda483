// fairlead users, groups.
#include <algorithm>
#include <cstdio>
#include <map>

#include "cli/patch_builder.hpp"
#include "cli/row_group.hpp"

namespace fairlead::cli {

namespace {

// ---- users -----------------------------------------------------------------------------------------------

struct UserRows {
  static RowType type() {
    RowType type;
    type.noun = "user";
    type.plural = "users";
    type.path = "/users";
    type.empty_hint = "No users. Add one: fairlead users add NAME";
    type.columns = {member_column("NAME", "name"), member_column("ROLE", "role"),
                    yes_no_column("ENABLED", "enabled"), member_column("TITLE", "title"),
                    member_column("ID", "id")};
    return type;
  }
};

struct UserFields {
  std::string title, role, enabled;

  void add_to(CLI::App& app) {
    app.add_option("--title", title, "Full name");
    app.add_option("--role", role, "user, or admin, who may do everything")
        ->check(CLI::IsMember({"admin", "user"}));
    app.add_option("--enabled", enabled, "Whether the tokens of the user are valid")
        ->check(CLI::IsMember({"true", "false"}));
  }
  bool empty() const { return (title + role + enabled).empty(); }

  static Task<Result<json::Raw>> body(const UserFields& fields, AdminClientPtr, std::string name) {
    PatchBuilder body;
    if (!name.empty()) body.set_string({"name"}, name);
    if (!fields.title.empty()) body.set_string({"title"}, fields.title);
    if (!fields.role.empty()) body.set_string({"role"}, fields.role);
    if (!fields.enabled.empty())
      body.set({"enabled"}, json::Raw::trusted(Bytes::copy_of(fields.enabled), true));
    co_return body.finish();
  }
};

// Returns whether the gateway lets clients without a token in.
Task<bool> lets_everyone_in(AdminClientPtr client) {
  if (client->direct()) co_return false;
  GatewayAddress address = client->address();
  address.token.clear();
  const Result<AdminClientPtr> anonymous = AdminClient::create(client->loop(), address);
  if (!anonymous) co_return false;
  AdminRequest request("GET", "/health");
  request.outside_api = true;
  const Result<AdminReply> reply = co_await (*anonymous)->send(std::move(request));
  co_return reply.has_value();
}

struct UserAdd : AddCommand<UserRows, UserFields> {
  static Task<Result<int>> run(const UserAdd& command, AdminClientPtr client) {
    const bool was_open = co_await lets_everyone_in(client);
    const Result<int> added = co_await AddCommand::run(command, client);
    if (!added || !was_open) co_return added;
    const bool is_open = co_await lets_everyone_in(client);
    if (!is_open)
      std::fprintf(stderr,
                   "fairlead: clients of the gateway need a token from now on, because it has a user\n"
                   "remedy: Give each client one with `fairlead connect CLIENT --create-token USER`, or let "
                   "clients in without a token with `fairlead config set auth.mode none`.\n");
    co_return added;
  }
};

// ---- groups ----------------------------------------------------------------------------------------------

struct GroupRows {
  static RowType type() {
    RowType type;
    type.noun = "group";
    type.plural = "groups";
    type.path = "/groups";
    type.empty_hint = "No groups. Add one: fairlead groups add NAME --member USER";
    type.columns = {member_column("NAME", "name"),
                    {"MEMBERS", [](json::View row) { return std::to_string(row["members"].size()); }},
                    member_column("TITLE", "title"),
                    member_column("ID", "id")};
    return type;
  }
};

struct GroupFields {
  std::string title;
  std::vector<std::string> members;

  void add_to(CLI::App& app) {
    app.add_option("--title", title, "Title for people");
    app.add_option("--member", members, "A user of the group, instead of those that it has; repeatable")
        ->type_name("USER")
        ->take_all()
        ->allow_extra_args(false);
  }
  bool empty() const { return title.empty() && members.empty(); }

  static Task<Result<json::Raw>> body(const GroupFields& fields, AdminClientPtr client, std::string name) {
    PatchBuilder body;
    if (!name.empty()) body.set_string({"name"}, name);
    if (!fields.title.empty()) body.set_string({"title"}, fields.title);
    if (!fields.members.empty()) {
      const Result<json::Raw> ids = co_await ids_of(client, "/users", fields.members);
      if (!ids) co_return ids.error();
      body.set({"members"}, *ids);
    }
    co_return body.finish();
  }
};

// Adds users to a group or removes them, and keeps the other members.
Task<Result<int>> change_members(const AdminOptions& options, AdminClientPtr client, std::string group,
                                 std::vector<std::string> users, bool joins) {
  const RowType type = GroupRows::type();
  AdminRequest read("GET", type.row_path(group));
  const Result<AdminReply> row = co_await client->send(std::move(read));
  if (!row) co_return row.error();
  std::vector<std::string> members;
  json::View(row->body)["members"].each_element([&](json::View id) {
    members.push_back(id.as_string().value_or(""));
    return true;
  });
  for (const std::string& user : users) {
    const Result<std::string> id = co_await id_of(client, "/users", user);
    if (!id) co_return id.error();
    std::erase(members, *id);
    if (joins) members.push_back(*id);
  }
  PatchBuilder patch;
  patch.set_strings({"members"}, members);
  const Result<json::Raw> changed = co_await client->patch(type.row_path(group), patch.finish(), row->etag);
  if (!changed) co_return changed.error();
  print_change(options, "The group `" + group + "` has " + std::to_string(members.size()) + " members.",
               *changed);
  co_return kSuccess;
}

template <bool Joins>
struct GroupMembers {
  AdminOptions options;
  std::string group;
  std::vector<std::string> users;

  void add_to(CLI::App& app) {
    app.add_option("NAME", group, "Name or id of the group")->required();
    app.add_option("USER", users, "Names or ids of users")->required();
  }
  static Task<Result<int>> run(const GroupMembers& command, AdminClientPtr client) {
    return change_members(command.options, std::move(client), command.group, command.users, Joins);
  }
};

}  // namespace

void add_accounts(CLI::App& program, int& status) {
  CLI::App& users = command_group(program, "users", "Manage the users of a gateway");
  add_row_group<UserRows, UserFields, UserAdd>(users, status);
  CLI::App& groups = command_group(program, "groups", "Manage groups of users");
  add_row_group<GroupRows, GroupFields>(groups, status);
  add_admin_command<GroupMembers<true>>(groups, "join", "Add users to a group", status);
  add_admin_command<GroupMembers<false>>(groups, "leave", "Remove users from a group", status);
}

}  // namespace fairlead::cli
