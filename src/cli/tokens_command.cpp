// fairlead tokens: API tokens of users.
#include <CLI/CLI.hpp>
#include <map>

#include "base/printable.hpp"
#include "cli/admin_command.hpp"
#include "cli/output.hpp"
#include "cli/patch_builder.hpp"

namespace fairlead::cli {

namespace {

using UserNames = std::map<std::string, std::string>;  // by id

// Returns the names of the users that this client may list.
Task<UserNames> user_names(AdminClientPtr client) {
  UserNames names;
  const Result<std::vector<json::Raw>> rows = co_await client->list("/users");
  if (!rows) co_return names;
  for (const json::Raw& row : *rows)
    names[string_of(json::View(row), "id")] = string_of(json::View(row), "name");
  co_return names;
}

std::string token_state(json::View row) {
  if (!row["revokedAt"].absent()) return "revoked";
  const std::string expires = string_of(row, "expiresAt");
  return expires.empty() ? "valid" : "until " + expires.substr(0, 10);
}

RowType token_rows(const UserNames& names) {
  RowType type;
  type.noun = "token";
  type.plural = "tokens";
  type.path = "/tokens";
  type.name = "id";
  type.empty_hint = "No tokens. Create one: fairlead tokens create USER";
  type.columns = {{"USER",
                   [names](json::View row) {
                     const auto found = names.find(string_of(row, "user"));
                     return found == names.end() ? string_of(row, "user") : found->second;
                   }},
                  member_column("NAME", "name"),
                  {"STATE", token_state},
                  member_column("SCOPES", "scopes"),
                  {"LAST USED", [](json::View row) { return string_of(row, "lastUsedAt").substr(0, 16); }},
                  member_column("PREFIX", "prefix"),
                  member_column("ID", "id")};
  return type;
}

struct TokensList {
  AdminOptions options;
  std::string user;

  void add_to(CLI::App& app) { app.add_option("--user", user, "Only tokens of this user"); }
  static Task<Result<int>> run(const TokensList& command, AdminClientPtr client) {
    std::string query;
    if (!command.user.empty()) {
      const Result<std::string> id = co_await id_of(client, "/users", command.user);
      if (!id) co_return id.error();
      add_query(query, "user", *id);
    }
    UserNames names;
    if (!command.options.json && !command.options.quiet) names = co_await user_names(client);
    const RowType type = token_rows(names);
    const Result<int> listed = co_await list_rows(command.options, type, client, query);
    co_return listed;
  }
};

// Warns if `scope` is that of an endpoint or a server that this client cannot find.
Task<void> warn_of_unknown_scope(AdminClientPtr client, std::string scope) {
  const std::size_t colon = scope.find(':');
  const std::string kind = scope.substr(0, colon);
  if (kind != "endpoint" && kind != "server") co_return;
  const std::string name = colon == std::string::npos ? std::string() : scope.substr(colon + 1);
  const std::string rows = kind == "endpoint" ? "/endpoints/" : "/mcp/servers/";
  const Result<json::Raw> row = co_await client->get(rows + path_segment(name));
  const bool found = row && string_of(json::View(*row), "name") == name;
  const bool unknown = row || row.error().detail().http_status == 404;
  if (!found && unknown) print_warning("the scope `" + scope + "` names no " + kind + " that you can see");
}

struct TokensCreate {
  AdminOptions options;
  std::string user, name, expires;
  std::vector<std::string> scopes;

  void add_to(CLI::App& app) {
    app.add_option("USER", user, "Name or id of the user")->required();
    app.add_option("--name", name, "What the token is for");
    app.add_option("--expires", expires, "When it expires: a duration such as 90d, or a time")
        ->type_name("WHEN");
    app.add_option("--scope", scopes,
                   "What the token may do: mcp, endpoint:NAME, server:NAME, admin, admin:AREA or "
                   "admin:AREA:read; repeatable")
        ->type_name("SCOPE")
        ->take_all()
        ->allow_extra_args(false);
    app.footer(
        "The token is printed once; the gateway stores only its digest. With -q nothing else is printed.");
  }
  json::Raw body() const {
    PatchBuilder body;
    body.set_string({"user"}, user);
    if (!name.empty()) body.set_string({"name"}, name);
    if (!expires.empty()) body.set_string({"expires"}, expires);
    if (!scopes.empty()) body.set_strings({"scopes"}, scopes);
    return body.finish();
  }
  static Task<Result<int>> run(const TokensCreate& command, AdminClientPtr client) {
    const Result<json::Raw> row = co_await client->post("/tokens", command.body());
    if (!row) co_return row.error();
    for (const std::string& scope : command.scopes) co_await warn_of_unknown_scope(client, scope);
    if (command.options.json) {
      print_json(row->text());
      co_return kSuccess;
    }
    print_note(command.options, "The token of `" + command.user + "`, which is shown only this once:");
    print_text_line(string_of(json::View(*row), "token"));
    co_return kSuccess;
  }
};

struct TokensRevoke {
  AdminOptions options;
  std::vector<std::string> ids;

  void add_to(CLI::App& app) {
    app.add_option("ID", ids, "Ids of the tokens, as `fairlead tokens list` shows them")->required();
    options.add_yes_to(app);
  }
  static void print_revocation(const AdminOptions& options, const std::string& id) {
    json::Writer revoked;
    revoked.begin_object().key("revoked").boolean(true).key("id").string(id).end_object();
    print_change(options, "Revoked the token " + id + ".", revoked.finish());
  }
  std::string question() const {
    return ids.size() == 1 ? "Revoke the token " + printable_line(ids.front()) + "?"
                           : "Revoke " + std::to_string(ids.size()) + " tokens?";
  }
  static Task<Result<int>> run(const TokensRevoke& command, AdminClientPtr client) {
    const RowType type = token_rows(UserNames());
    for (const std::string& id : command.ids) {
      const Result<json::Raw> row = co_await client->get(type.row_path(id));
      if (!row) co_return row.error();
    }
    const Result<bool> confirmed = command.options.confirm(command.question());
    if (!confirmed) co_return confirmed.error();
    if (!*confirmed) co_return kRemoteError;
    for (const std::string& id : command.ids) {
      const Result<json::Raw> revoked = co_await client->remove(type.row_path(id));
      if (!revoked) co_return revoked.error();
      print_revocation(command.options, id);
    }
    co_return kSuccess;
  }
};

}  // namespace

void add_tokens(CLI::App& program, int& status) {
  CLI::App& tokens = command_group(program, "tokens", "Create and revoke tokens for users of a gateway");
  add_admin_command<TokensList>(tokens, "list", "List the tokens", status);
  add_admin_command<TokensCreate>(tokens, "create", "Create a token and print it", status);
  add_admin_command<TokensRevoke>(tokens, "revoke", "Revoke tokens", status);
}

}  // namespace fairlead::cli
