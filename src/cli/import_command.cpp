// fairlead servers import: adds the servers of a client's file, of a server.json or of a bundle to the
// registry of a gateway.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "base/read_file.hpp"
#include "cli/admin_command.hpp"
#include "cli/common.hpp"
#include "cli/import_report.hpp"
#include "cli/output.hpp"
#include "cli/servers_command.hpp"
#include "cli/terminal.hpp"
#include "clients/row_strings.hpp"
#include "fairlead/http/server.hpp"
#include "http/url.hpp"

namespace fairlead::cli {

namespace {

using clients::ImportAction;
using clients::PlannedServer;

struct ImportCommand {
  AdminOptions options;
  ImportRequest request;
  clients::ImportChoices choices;
  std::vector<std::string> input_arguments;  // NAME=VALUE
  std::vector<std::string> input_files;      // NAME=FILE
  bool keep_secrets = false;
  bool dry_run = false;

  void add_to(CLI::App& app);
  Result<void> parse_inputs();
  static Task<Result<int>> run(ImportCommand& command, AdminClientPtr client);
};

void ImportCommand::add_to(CLI::App& app) {
  app.add_option(
         "SOURCE", request.source,
         "A file, or a client such as claude-desktop, cursor or vscode, whose file is found by itself")
      ->required();
  app.add_option("NAME", choices.names, "Import these servers only; `*` matches any text");
  app.add_option("--format", request.format, "The client that has written the file [recognised]");
  app.add_option("--project", request.project, "A directory: import the client's file of this project too");
  app.add_option("--package", request.package,
                 "Which package or remote of a server.json to use, such as npm, pypi or remote");
  app.add_option("--input", input_arguments, "A value that a server needs, as NAME=VALUE")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--input-file", input_files,
                 "The same as NAME=FILE, with the value in a file, or on stdin if FILE is `-`")
      ->take_all()
      ->allow_extra_args(false);
  app.add_flag("--dry-run", dry_run, "Show what would be added and changed, and stop");
  app.add_flag("--update", choices.update, "Change servers that exist and differ");
  app.add_flag("--disabled", choices.disabled, "Add the servers disabled");
  CLI::Option* const move =
      app.add_flag("--move-secrets", choices.move_secrets, "Store literal secrets encrypted, without asking");
  app.add_flag("--keep-secrets", keep_secrets,
               "Leave literal secrets in the rows of the servers, without asking")
      ->excludes(move);
}

// Returns the content of a file, or of stdin if `path` is `-`, without the line end.
Result<std::string> read_value(const std::string& path) {
  constexpr FileLimit kLimit{"max_input_value_bytes", 1u << 20};
  Result<std::string> value = std::string();
  if (path == "-") {
    value = read_stdin(kLimit);
    if (!value) return value.error();
  } else {
    value = read_regular_file(path, kLimit);
    if (!value) return Error(ErrorKind::validation, path + ": " + value.error().message());
  }
  while (value->ends_with('\n') || value->ends_with('\r')) value->pop_back();
  return value;
}

Result<void> ImportCommand::parse_inputs() {
  for (const std::string& argument : input_arguments) {
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error(ErrorKind::validation, "--input: expected NAME=VALUE");
    choices.inputs[argument.substr(0, equals)].push_back(argument.substr(equals + 1));
  }
  bool stdin_is_read = false;
  for (const std::string& argument : input_files) {
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error(ErrorKind::validation, "--input-file: expected NAME=FILE");
    if (argument.substr(equals + 1) == "-" && std::exchange(stdin_is_read, true))
      return Error(ErrorKind::validation, "--input-file: only one value can be read from stdin");
    Result<std::string> value = read_value(argument.substr(equals + 1));
    if (!value) return Error(ErrorKind::validation, "--input-file: " + value.error().message());
    choices.inputs[argument.substr(0, equals)].push_back(std::move(*value));
  }
  choices.dry_run = dry_run;
  return {};
}

// Values in arguments are visible to all users of this machine, in the list of processes.
Result<void> refuse_secret_arguments(const ImportCommand& command, const ImportSource& source) {
  const std::vector<std::string>& arguments = command.input_arguments;
  for (const clients::ImportedServer* const server :
       clients::selected_servers(source.file, command.choices)) {
    for (const clients::ImportInput& input : server->inputs) {
      const bool is_argument = std::ranges::any_of(
          arguments, [&](const std::string& argument) { return argument.starts_with(input.name + "="); });
      if (input.secret && is_argument)
        return Error(ErrorKind::validation,
                     "--input " + input.name +
                         ": the value is secret, and arguments are visible to other users of this machine")
            .with([&](ErrorDetail& detail) {
              detail.remedy = "Pass --input-file " + input.name +
                              "=FILE (`-` for stdin), or store it later with " + "`fairlead secrets set " +
                              input.name + " --server NAME`.";
            });
    }
  }
  return {};
}

// ---- questions -------------------------------------------------------------------------------------------

std::string question_of(const clients::ImportInput& input, const std::string& server) {
  std::string question = server + " needs `" + input.name + "`";
  if (!input.description.empty()) question += " (" + input.description + ")";
  for (std::size_t i = 0; i < input.choices.size(); ++i)
    question += (i == 0 ? ", one of " : ", ") + input.choices[i];
  if (input.secret) question += "; empty: later";
  if (!input.default_value.empty()) question += " [" + input.default_value + "]";
  return printable_line(question + ":");
}

Error no_answer() {
  return Error(ErrorKind::cancelled, "a question was not answered, and nothing of this file was imported");
}

// Asks for the inputs that have no value yet. Values of inputs with the same name are asked for once. Fails
// with `cancelled` if there is no answer, which differs from an empty one.
Result<void> ask_for_inputs(const ImportSource& source, clients::ImportChoices& choices,
                            std::chrono::milliseconds timeout) {
  for (const clients::ImportedServer* const server : clients::selected_servers(source.file, choices)) {
    if (!server->skip_reason.empty()) continue;
    for (const clients::ImportInput& input : server->inputs) {
      if (choices.inputs.contains(input.name)) continue;
      const std::string question = question_of(input, server->name);
      const std::optional<std::string> value =
          input.secret ? ask_secret(question, timeout) : ask(question, timeout);
      if (!value) return no_answer();
      if (!value->empty()) choices.inputs[input.name].push_back(*value);
    }
  }
  return {};
}

// Returns the literal secrets that are not in the secret store yet.
std::vector<KeptSecret> literal_secrets_of(const ImportSource& source, const std::vector<PlannedServer>& plan,
                                           const clients::ImportChoices& choices) {
  std::vector<KeptSecret> found;
  const std::vector<const clients::ImportedServer*> servers = clients::selected_servers(source.file, choices);
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (plan[i].action == ImportAction::skip || plan[i].action == ImportAction::unchanged) continue;
    for (const clients::LiteralSecret& secret : servers[i]->literal_secrets) {
      const json::View now = clients::value_at(json::View(plan[i].body), secret.pointer);
      if (now.as_string().value_or("") != secret.replacement)
        found.push_back({plan[i].name, secret.pointer.substr(secret.pointer.find('/', 1) + 1)});
    }
  }
  return found;
}

std::optional<bool> offer_to_move(const std::vector<KeptSecret>& secrets, std::chrono::milliseconds timeout) {
  std::string list;
  for (const KeptSecret& secret : secrets)
    list += "\n  " + printable_line(secret.server + ": " + secret.place);
  return confirm("These values look like secrets:" + list +
                     "\nStore them encrypted instead of in the rows of the servers?",
                 timeout);
}

// ---- changes ---------------------------------------------------------------------------------------------

json::Raw secret_body(const clients::PlannedSecret& secret, const std::string& server_id) {
  json::Writer body;
  body.begin_object().key("name").string(secret.name).key("value").string(secret.value);
  body.key("server").string(server_id).end_object();
  return std::move(body).finish();
}

Task<Result<void>> store_secret(AdminClientPtr client, clients::PlannedSecret secret, std::string server_id) {
  const Result<json::Raw> stored = co_await client->post("/secrets", secret_body(secret, server_id));
  if (stored) co_return Result<void>();
  if (stored.error().detail().http_status != 409) co_return stored.error();
  const Result<std::vector<json::Raw>> existing = co_await client->list(
      "/secrets?server=" + path_segment(server_id) + "&name=" + path_segment(secret.name));
  if (!existing) co_return existing.error();
  json::Writer patch;
  patch.begin_object().key("value").string(secret.value).end_object();
  const json::Raw patch_body = std::move(patch).finish();
  for (const json::Raw& row : *existing) {
    if (!json::View(row)["user"].absent()) continue;
    const std::string id = json::View(row)["id"].as_string().value_or("");
    const Result<json::Raw> patched = co_await client->patch("/secrets/" + path_segment(id), patch_body);
    if (!patched) co_return patched.error();
  }
  co_return Result<void>();
}

Task<Result<void>> store_secrets(AdminClientPtr client, std::vector<clients::PlannedSecret> secrets,
                                 std::string server_id) {
  for (const clients::PlannedSecret& secret : secrets) {
    const Result<void> stored = co_await store_secret(client, secret, server_id);
    if (!stored) co_return stored.error();
  }
  co_return Result<void>();
}

json::Raw enabled_patch(bool enabled) {
  json::Writer patch;
  patch.begin_object().key("enabled").boolean(enabled).end_object();
  return std::move(patch).finish();
}

// Removes a server whose secrets could not be stored, so that the import can be repeated. Returns the error.
Task<Result<void>> without_server(AdminClientPtr client, std::string id, Error failure) {
  const Result<json::Raw> removed = co_await client->remove("/mcp/servers/" + path_segment(id));
  if (removed) co_return failure;
  co_return Error(failure.kind(), failure.message() +
                                      "; the server was added, disabled and without its secrets, and "
                                      "cannot be removed: " +
                                      removed.error().message());
}

// A server with secrets is enabled when they are stored, so that it does not start without them.
Task<Result<void>> add_server(AdminClientPtr client, PlannedServer server) {
  const bool enabled = json::View(server.body)["enabled"].as_bool().value_or(true);
  json::Raw body = server.body;
  if (enabled && !server.secrets.empty()) {
    const json::Raw patch = enabled_patch(false);
    body = clients::merged(body, patch);
  }
  const Result<json::Raw> added = co_await client->post("/mcp/servers", body);
  if (!added) co_return added.error();
  const std::string id = json::View(*added)["id"].as_string().value_or("");
  const Result<void> stored = co_await store_secrets(client, server.secrets, id);
  if (!stored) {
    const Error reason = stored.error();
    const Result<void> failure = co_await without_server(client, id, reason);
    co_return failure;
  }
  if (!enabled || server.secrets.empty()) co_return Result<void>();
  const Result<json::Raw> patched =
      co_await client->patch("/mcp/servers/" + path_segment(id), enabled_patch(true));
  if (!patched) co_return patched.error();
  co_return Result<void>();
}

Task<Result<void>> update_server(AdminClientPtr client, PlannedServer server) {
  const Result<void> stored = co_await store_secrets(client, server.secrets, server.existing_id);
  if (!stored) co_return stored.error();
  if (server.changes.empty()) co_return Result<void>();  // only its secrets
  const Result<json::Raw> patched = co_await client->patch("/mcp/servers/" + path_segment(server.existing_id),
                                                           server.patch, server.existing_etag);
  if (!patched) co_return patched.error();
  co_return Result<void>();
}

Task<Result<void>> apply(AdminClientPtr client, PlannedServer server) {
  if (server.action == ImportAction::add) {
    const Result<void> added = co_await add_server(client, std::move(server));
    co_return added;
  }
  const Result<void> updated = co_await update_server(client, std::move(server));
  co_return updated;
}

// ---- the command -----------------------------------------------------------------------------------------

Task<Result<std::vector<PlannedServer>>> plan_with_rows(AdminClientPtr client, const ImportSource& source,
                                                        const clients::ImportChoices& choices) {
  const Result<std::vector<json::Raw>> rows = co_await client->list("/mcp/servers");
  if (!rows) co_return rows.error();
  co_return clients::plan_import(source.file, *rows, choices);
}

// Plans the import of one file, with the answers of the user.
Task<Result<ImportOutcome>> plan_file(AdminClientPtr client, const ImportCommand& command,
                                      const ImportSource& source) {
  ImportOutcome outcome;
  outcome.source = &source;
  clients::ImportChoices choices = command.choices;
  const bool interactive = has_terminal() && !command.dry_run && !command.options.json;
  const Result<void> allowed = refuse_secret_arguments(command, source);
  if (!allowed) co_return allowed.error();
  if (interactive) {
    const Result<void> asked = ask_for_inputs(source, choices, command.options.gateway.wait_limit());
    if (!asked) co_return asked.error();
  }
  Result<std::vector<PlannedServer>> plan = co_await plan_with_rows(client, source, choices);
  if (!plan) co_return plan.error();
  const std::vector<KeptSecret> literal = literal_secrets_of(source, *plan, choices);
  if (interactive && !literal.empty() && !choices.move_secrets && !command.keep_secrets) {
    const std::optional<bool> move = offer_to_move(literal, command.options.gateway.wait_limit());
    if (!move) co_return no_answer();
    choices.move_secrets = *move;
    plan = co_await plan_with_rows(client, source, choices);
    if (!plan) co_return plan.error();
  }
  outcome.kept_secrets = literal_secrets_of(source, *plan, choices);
  outcome.servers = std::move(*plan);
  outcome.failures.resize(outcome.servers.size());
  co_return outcome;
}

bool is_applied(const PlannedServer& server) {
  return server.action == ImportAction::add || server.action == ImportAction::update;
}

Task<void> apply_all(AdminClientPtr client, ImportOutcome& outcome) {
  for (std::size_t i = 0; i < outcome.servers.size(); ++i) {
    if (!is_applied(outcome.servers[i])) continue;
    const Result<void> applied = co_await apply(client, outcome.servers[i]);
    if (!applied) outcome.failures[i] = applied.error().message();
  }
}

// Returns whether the gateway at this URL runs on this machine.
bool is_local(const std::string& url) {
  if (url.starts_with("unix:")) return true;
  const Result<http::Url> parsed = http::Url::parse(url);
  if (!parsed) return false;
  const Result<bool> local = http::is_local_address(parsed->host_and_port());
  return local && *local;
}

// Unpacks a bundle whose server is imported. It is unpacked on this machine, where the gateway must run too.
Result<void> install_package(const AdminClient& client, const ImportOutcome& outcome) {
  const ImportSource& source = *outcome.source;
  if (!source.package || !source.package->bundle || std::ranges::none_of(outcome.servers, is_applied))
    return {};
  if (!client.direct() && !is_local(client.address().url))
    return Error(ErrorKind::validation,
                 "a bundle can be imported only on the machine of the gateway, because it is unpacked there");
  return packages::install(*source.package);
}

// Says which servers were not imported because they need values; empty: none.
std::string missing_values(const std::vector<ImportOutcome>& outcomes) {
  std::string text;
  for (const ImportOutcome& outcome : outcomes)
    for (const PlannedServer& server : outcome.servers)
      if (server.action == ImportAction::skip && !server.missing_inputs.empty())
        text += (text.empty() ? "" : "; ") + ("`" + server.name + "` was not imported: " + server.reason);
  return text;
}

Task<Result<int>> ImportCommand::run(ImportCommand& command, AdminClientPtr client) {
  const Result<void> parsed = command.parse_inputs();
  if (!parsed) co_return parsed.error();
  command.request.own_urls = {client->address().url, "http://127.0.0.1:8808/mcp"};
  const Result<std::vector<ImportSource>> sources = read_sources(command.request);
  if (!sources) co_return sources.error();
  std::vector<ImportOutcome> outcomes;
  bool failed = false;
  for (const ImportSource& source : *sources) {
    Result<ImportOutcome> outcome = co_await plan_file(client, command, source);
    if (!outcome) co_return outcome.error();
    if (!command.dry_run) {
      const Result<void> installed = install_package(*client, *outcome);
      if (!installed) co_return installed.error();
      co_await apply_all(client, *outcome);
    }
    failed =
        failed || std::ranges::any_of(outcome->failures, [](const std::string& f) { return !f.empty(); });
    if (!command.options.json && !command.options.quiet)
      print_import(*outcome, command.dry_run, command.dry_run);
    outcomes.push_back(std::move(*outcome));
  }
  if (command.options.json) print_import_json(outcomes, command.dry_run);
  const std::string missing = missing_values(outcomes);
  if (!missing.empty() && !failed) co_return Error(ErrorKind::validation, missing);
  co_return failed ? kRemoteError : kSuccess;
}

}  // namespace

void add_server_import_command(CLI::App& servers, int& status) {
  add_admin_command<ImportCommand>(
      servers, "import",
      "Add the servers of another program's file, of a server.json, or of a bundle (.mcpb)", status);
}

}  // namespace fairlead::cli
