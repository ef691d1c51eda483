// fairlead secrets: stores values that servers refer to as ${secret:NAME}. A value is never an argument,
// because other users of the machine can read the arguments of every process.
#include <CLI/CLI.hpp>
#include <cstdlib>

#include "base/read_file.hpp"
#include "cli/admin_client.hpp"
#include "cli/common.hpp"
#include "cli/output.hpp"
#include "cli/terminal.hpp"
#include "fairlead/json/writer.hpp"
#include "process/core_dumps.hpp"

namespace fairlead::cli {

namespace {

constexpr FileLimit kValueLimit{"max_secret_value_bytes", 64u << 10};

struct SecretsOptions {
  GatewayChoice gateway;
  std::string name;
  std::string server;
  std::string user;
  std::string from_file;
  std::string from_env;
  std::vector<std::string> values;  // arguments that should not be there, or "-"
  bool data_key = false;
  bool only_data_key = false;
  bool json = false;
  bool yes = false;
};

std::string text_of(json::View row, std::string_view key) {
  return row[key].as_string(1u << 20).value_or(std::string());
}

Error usage_error(std::string message) {
  return Error(ErrorKind::validation, std::move(message));
}

// ---- values ----------------------------------------------------------------------------------------------

std::string without_last_line_break(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

// Reads the value from stdin. Its line break does not count against the limit.
Result<std::string> read_piped_value() {
  Result<std::string> text = read_stdin(FileLimit{kValueLimit.name, kValueLimit.bytes + 2});
  if (!text) return usage_error(text.error().message());
  return without_last_line_break(std::move(*text));
}

Result<std::string> ask_value(const SecretsOptions& options) {
  std::optional<std::string> value =
      ask_secret("Value of " + options.name + ":", options.gateway.wait_limit());
  if (!value) return usage_error("no value was entered");
  return std::move(*value);
}

Result<std::string> read_value(const SecretsOptions& options) {
  if (!options.from_file.empty()) {
    Result<std::string> text = read_regular_file(options.from_file, kValueLimit);
    if (!text) return usage_error("--from-file " + options.from_file + ": " + text.error().message());
    return without_last_line_break(std::move(*text));
  }
  if (!options.from_env.empty()) {
    const char* const value = std::getenv(options.from_env.c_str());
    if (value) return std::string(value);
    return usage_error("--from-env: the variable " + options.from_env + " is not set");
  }
  const bool prompt = options.values.empty() && stdin_is_terminal();
  return prompt ? ask_value(options) : read_piped_value();
}

// ---- rows ------------------------------------------------------------------------------------------------

// Returns the id of a row of /mcp/servers or /users; empty for an empty name.
Task<Result<std::string>> row_id(AdminClientPtr client, std::string path, std::string name) {
  if (name.empty()) co_return std::string();
  const Result<json::Raw> row = co_await client->get(path + path_segment(name));
  if (!row) co_return row.error();
  co_return text_of(json::View(*row), "id");
}

Error no_such_secret(const SecretsOptions& options, bool users_have_it) {
  return Error(ErrorKind::validation,
               "there is no secret " + options.name +
                   (options.server.empty() ? "" : " of server " + options.server) +
                   (options.user.empty() ? "" : " and user " + options.user) +
                   (users_have_it ? " for all users; --user USER selects the value of a user" : "") +
                   "; `fairlead secrets list` shows all");
}

// Returns whether the caller sees the rows of all users: only administrators may ask for the key.
Task<Result<bool>> is_administrator(AdminClientPtr client) {
  const Result<json::Raw> status = co_await client->get("/secrets/status");
  if (status) co_return true;
  if (status.error().detail().http_status == 403) co_return false;
  co_return status.error();
}

// Returns the row with this name, server and user. Without --user it is that of the server; for a user who is
// not an administrator, and sees no rows but their own, that is their own row.
Task<Result<json::Raw>> find_secret_row(AdminClientPtr client, SecretsOptions options) {
  const Result<std::string> server = co_await row_id(client, "/mcp/servers/", options.server);
  if (!server) co_return server.error();
  const Result<std::string> user = co_await row_id(client, "/users/", options.user);
  if (!user) co_return user.error();
  const Result<std::vector<json::Raw>> rows = co_await client->list(
      "/secrets?name=" + path_segment(options.name) + "&server=" + path_segment(*server));
  if (!rows) co_return rows.error();
  json::Raw of_user;
  for (const json::Raw& row : *rows) {
    const json::View view(row);
    if (text_of(view, "name") != options.name) continue;  // the filter is a pattern
    if (text_of(view, "user") == *user) co_return row;
    of_user = row;
  }
  if (of_user.absent() || !user->empty()) co_return no_such_secret(options, false);
  const Result<bool> sees_all = co_await is_administrator(client);
  if (!sees_all) co_return sees_all.error();
  if (*sees_all) co_return no_such_secret(options, true);
  co_return of_user;
}

json::Raw new_row(const SecretsOptions& options, const std::string& value) {
  json::Writer body;
  body.begin_object().key("name").string(options.name).key("value").string(value);
  if (!options.server.empty()) body.key("server").string(options.server);
  if (!options.user.empty()) body.key("user").string(options.user);
  body.end_object();
  return body.finish();
}

std::string described(const SecretsOptions& options) {
  std::string text = options.name;
  if (!options.server.empty()) text += " of server " + options.server;
  if (!options.user.empty()) text += " for user " + options.user;
  return text;
}

int print_stored(const SecretsOptions& options, const json::Raw& row) {
  if (options.json) {
    print_json(row.text());
  } else {
    print_text_line("Stored " + described(options) + ".");
  }
  return kSuccess;
}

// ---- commands --------------------------------------------------------------------------------------------

Task<Result<int>> set_secret(AdminClientPtr client, SecretsOptions options, std::string value) {
  const Result<json::Raw> created = co_await client->post("/secrets", new_row(options, value));
  if (created) co_return print_stored(options, *created);
  if (created.error().detail().failure_code != "name_taken") co_return created.error();
  const Result<json::Raw> row = co_await find_secret_row(client, options);
  if (!row) co_return row.error();
  json::Writer patch;
  patch.begin_object().key("value").string(value).end_object();
  const std::string path = "/secrets/" + text_of(json::View(*row), "id");
  const Result<json::Raw> changed = co_await client->patch(path, patch.finish());
  if (!changed) co_return changed.error();
  co_return print_stored(options, *changed);
}

// Returns the names of rows by their ids.
Task<Result<std::map<std::string, std::string>>> names_by_id(AdminClientPtr client, std::string path) {
  std::map<std::string, std::string> names;
  const Result<std::vector<json::Raw>> rows = co_await client->list(path);
  if (!rows) co_return names;  // the ids are shown instead
  for (const json::Raw& row : *rows)
    names.emplace(text_of(json::View(row), "id"), text_of(json::View(row), "name"));
  co_return names;
}

std::string shown(const std::map<std::string, std::string>& names, const std::string& id,
                  const char* nobody) {
  if (id.empty()) return nobody;
  const auto found = names.find(id);
  return found == names.end() ? id : found->second;
}

Task<Result<int>> print_secret_table(AdminClientPtr client, std::vector<json::Raw> rows) {
  const Result<std::map<std::string, std::string>> servers = co_await names_by_id(client, "/mcp/servers");
  if (!servers) co_return servers.error();
  const Result<std::map<std::string, std::string>> users = co_await names_by_id(client, "/users");
  if (!users) co_return users.error();
  std::vector<std::vector<std::string>> table = {{"NAME", "SERVER", "USER", "CHANGED"}};
  for (const json::Raw& row : rows) {
    const json::View view(row);
    std::vector<std::string> cells;
    cells.push_back(text_of(view, "name"));
    cells.push_back(shown(*servers, text_of(view, "server"), "(all)"));
    cells.push_back(shown(*users, text_of(view, "user"), "(all)"));
    cells.push_back(text_of(view, "updatedAt"));
    table.push_back(std::move(cells));
  }
  print_table(table);
  co_return kSuccess;
}

Task<Result<int>> list_secrets(AdminClientPtr client, SecretsOptions options) {
  const Result<std::string> server = co_await row_id(client, "/mcp/servers/", options.server);
  if (!server) co_return server.error();
  const Result<std::string> user = co_await row_id(client, "/users/", options.user);
  if (!user) co_return user.error();
  std::string path = "/secrets";
  if (!server->empty()) path += "?server=" + path_segment(*server);
  if (!user->empty()) path += (server->empty() ? "?user=" : "&user=") + path_segment(*user);
  Result<std::vector<json::Raw>> rows = co_await client->list(path);
  if (!rows) co_return rows.error();
  if (options.json) {
    print_json_array(*rows);
    co_return kSuccess;
  }
  if (rows->empty()) {
    print_text_line("No secrets. `fairlead secrets set NAME` stores one.");
    co_return kSuccess;
  }
  const Result<int> printed = co_await print_secret_table(client, std::move(*rows));
  co_return printed;
}

Task<Result<int>> remove_secret(AdminClientPtr client, SecretsOptions options) {
  const Result<json::Raw> row = co_await find_secret_row(client, options);
  if (!row) co_return row.error();
  const Result<bool> confirmed = confirm_destructive("Remove the secret " + described(options) + "?",
                                                     options.yes, options.gateway.wait_limit());
  if (!confirmed) co_return confirmed.error();
  if (!*confirmed) co_return kRemoteError;
  const Result<json::Raw> removed = co_await client->remove("/secrets/" + text_of(json::View(*row), "id"));
  if (!removed) co_return removed.error();
  if (options.json) print_json("{\"removed\":true}");
  if (!options.json) print_text_line("Removed " + described(options) + ".");
  co_return kSuccess;
}

Task<Result<int>> rekey(AdminClientPtr client, SecretsOptions options) {
  const Result<bool> confirmed = confirm_destructive(
      "Replace the keys that encrypt the secrets? Backups of the database need the former key.", options.yes,
      options.gateway.wait_limit());
  if (!confirmed) co_return confirmed.error();
  if (!*confirmed) co_return kRemoteError;
  json::Writer body;
  body.begin_object().key("key").boolean(!options.only_data_key);
  body.key("dataKey").boolean(options.data_key || options.only_data_key).end_object();
  const Result<json::Raw> outcome = co_await client->post("/secrets/rekey", body.finish());
  if (!outcome) co_return outcome.error();
  const json::View view(*outcome);
  if (options.json) {
    print_json(outcome->text());
  } else {
    const std::string values = std::string(view["values"].text());
    print_text_line("The key is " + text_of(view, "keyId") + " now (before: " +
                    text_of(view, "previousKeyId") + "); values encrypted again: " + values + ".");
  }
  co_return kSuccess;
}

Task<Result<int>> show_status(AdminClientPtr client, SecretsOptions options) {
  const Result<json::Raw> status = co_await client->get("/secrets/status");
  if (!status) co_return status.error();
  const json::View view(*status);
  const bool usable = view["usable"].text() == "true";
  if (options.json) {
    print_json(status->text());
  } else {
    print_text_line("secrets: " + std::string(view["secrets"].text()));
    print_text_line("key:     " + (text_of(view, "keyId").empty() ? "none" : text_of(view, "keyId")) +
                    (text_of(view, "source").empty() ? "" : ", from " + text_of(view, "source")));
    if (!usable) print_text_line("problem: " + text_of(view, "problem"));
  }
  co_return usable ? kSuccess : kRemoteError;
}

// ---- options ---------------------------------------------------------------------------------------------

using SecretsAction = Task<Result<int>> (*)(AdminClientPtr, SecretsOptions);

CLI::App& add_secret_command(CLI::App& group, const char* name, const char* description,
                             const std::shared_ptr<SecretsOptions>& options) {
  CLI::App* const command = group.add_subcommand(name, description);
  options->gateway.add_to(*command);
  options->gateway.may_create_database = command->get_name() == "set";
  command->add_flag("--json", options->json, "Print JSON");
  return *command;
}

void add_scope(CLI::App& command, SecretsOptions& options) {
  command.add_option("--server", options.server, "The value for one server [all servers]");
  command.add_option("--user", options.user, "The value for one user at that server [all users]");
}

void run_on(CLI::App& command, const std::shared_ptr<SecretsOptions>& options, int& status,
            SecretsAction action) {
  command.callback([options, &status, action] {
    status = run_admin(options->gateway, [options, action](AdminClientPtr client) {
      return action(std::move(client), *options);
    });
  });
}

int run_set(const SecretsOptions& options) {
  if (!options.values.empty() && options.values != std::vector<std::string>{"-"})
    return report(usage_error("a value is not an argument, because other users of this machine can read the "
                              "arguments of every process. Enter it at the prompt, or use `-` (stdin), "
                              "--from-file or --from-env")
                      .with([](ErrorDetail& detail) { detail.failure_code = "invalid_request"; }));
  disable_core_dumps();
  Result<std::string> value = read_value(options);
  if (!value) return report(value.error());
  return run_admin(options.gateway, [&options, &value](AdminClientPtr client) {
    return set_secret(std::move(client), options, std::move(*value));
  });
}

void add_set(CLI::App& group, int& status) {
  const auto options = std::make_shared<SecretsOptions>();
  CLI::App& command = add_secret_command(
      group, "set", "Store a value, or replace it. Asks for the value, or reads it from stdin", options);
  command.add_option("NAME", options->name, "Servers refer to it as ${secret:NAME}")->required();
  command.add_option("VALUE", options->values, "Only `-`: read the value from stdin")->type_name("");
  add_scope(command, *options);
  command.add_option("--from-file", options->from_file, "Read the value from a file");
  command.add_option("--from-env", options->from_env, "Read the value from a variable of the environment");
  command.callback([options, &status] { status = run_set(*options); });
}

}  // namespace

void add_secrets(CLI::App& program, int& status) {
  CLI::App* const group = program.add_subcommand(
      "secrets", "Store API keys and other values, encrypted, for the servers of the gateway");
  group->require_subcommand(1);
  const auto listed = std::make_shared<SecretsOptions>();
  CLI::App& list = add_secret_command(*group, "list", "List the secrets, without their values", listed);
  add_scope(list, *listed);
  run_on(list, listed, status, list_secrets);
  add_set(*group, status);
  const auto removed = std::make_shared<SecretsOptions>();
  CLI::App& remove = add_secret_command(*group, "remove", "Remove a secret", removed);
  remove.add_option("NAME", removed->name, "The name of the secret")->required();
  add_scope(remove, *removed);
  remove.add_flag("--yes,-y", removed->yes, "Do not ask");
  run_on(remove, removed, status, remove_secret);
  const auto replaced = std::make_shared<SecretsOptions>();
  CLI::App& rekeyed =
      add_secret_command(*group, "rekey", "Replace the keys that encrypt the secrets", replaced);
  rekeyed.add_flag("--data-key", replaced->data_key, "Also encrypt all values with a new data key");
  rekeyed.add_flag("--only-data-key", replaced->only_data_key,
                   "Encrypt all values with a new data key, and keep the key that encrypts it");
  rekeyed.add_flag("--yes,-y", replaced->yes, "Do not ask");
  run_on(rekeyed, replaced, status, rekey);
  const auto shown_options = std::make_shared<SecretsOptions>();
  CLI::App& state =
      add_secret_command(*group, "status", "Show which key encrypts the secrets", shown_options);
  run_on(state, shown_options, status, show_status);
}

}  // namespace fairlead::cli
