// fairlead connect: enters the gateway into the configuration file of a client.
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "admin/admin_token.hpp"
#include "base/replace_file.hpp"
#include "cli/common.hpp"
#include "cli/connect_target.hpp"
#include "cli/output.hpp"
#include "cli/text_diff.hpp"
#include "clients/client_file.hpp"
#include "clients/edit.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::cli {

namespace {

namespace fs = std::filesystem;

struct ConnectCommand {
  std::string client;
  std::string name = "fairlead";
  ConnectChoice choice;
  bool project = false;
  bool undo = false;
  bool list = false;
  bool all = false;
  bool dry_run = false;
  bool create = false;
  bool json = false;
};

clients::Places places_here(bool with_project) {
  clients::Places places =
      clients::Places::of_environment([](const std::string& name) -> std::optional<std::string> {
        const char* const value = std::getenv(name.c_str());
        return value ? std::optional<std::string>(value) : std::nullopt;
      });
  std::error_code failed;
  if (with_project) places.project = fs::current_path(failed).string();
  return places;
}

Result<const clients::Client*> selected_client(const std::string& id) {
  if (const clients::Client* const client = clients::find_client(id)) return client;
  return Error(ErrorKind::validation,
               "there is no client `" + id + "`; the clients are " + clients::client_ids());
}

// Returns the file to change: the first that exists, or else the first of the client.
Result<clients::FoundFile> selected_file(const clients::Client& client, bool project) {
  const clients::FileScope scope = project ? clients::FileScope::project : clients::FileScope::user;
  std::vector<clients::FoundFile> files = clients::possible_files(client, places_here(project));
  std::erase_if(files, [&](const clients::FoundFile& file) { return file.scope != scope; });
  if (files.empty())
    return Error(ErrorKind::validation, std::string(client.title) + " has no file for " +
                                            (project ? "projects" : "users; pass --project"));
  const auto existing = std::ranges::find(files, true, &clients::FoundFile::exists);
  return existing == files.end() ? files.front() : *existing;
}

// A directory that is missing means that the client is not installed.
Result<void> prepare_directory(const clients::Client& client, const std::string& path, bool create) {
  const fs::path directory = fs::path(path).parent_path();
  std::error_code failed;
  if (fs::is_directory(directory, failed)) return {};
  if (!create)
    return Error(ErrorKind::validation, std::string(client.title) + " does not seem to be installed: " +
                                            directory.string() + " does not exist")
        .with([](ErrorDetail& detail) { detail.remedy = "Pass --create to create it."; });
  fs::create_directories(directory, failed);
  if (!failed) return {};
  return Error(ErrorKind::io, "cannot create " + directory.string() + ": " + failed.message());
}

// ---- connect ---------------------------------------------------------------------------------------------

std::string without_token(std::string text, const std::string& token) {
  if (token.empty()) return text;
  for (std::size_t at = text.find(token); at != std::string::npos; at = text.find(token, at))
    text.replace(at, token.size(), "(token)");
  return text;
}

// What was done, for people and for programs.
struct ConnectOutcome {
  ConnectOutcome() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::string action;  // "connected", "unchanged", "restored", …
  std::string path;
  std::string backup;
  std::string diff;  // of a dry run
  std::vector<std::string> lines;
};

void print_outcome(const ConnectCommand& command, const ConnectOutcome& outcome) {
  if (!command.json) {
    if (!outcome.diff.empty()) print_text(outcome.diff);
    for (const std::string& line : outcome.lines) print_text_line(line);
    return;
  }
  json::Writer out;
  out.begin_object().key("client").string(command.client).key("action").string(outcome.action);
  out.key("file").string(outcome.path).key("dryRun").boolean(command.dry_run);
  if (!outcome.backup.empty()) out.key("backup").string(outcome.backup);
  if (!outcome.diff.empty()) out.key("diff").string(outcome.diff);
  out.key("messages").begin_array();
  for (const std::string& line : outcome.lines) out.string(line);
  out.end_array().end_object();
  print_json(out.text());
}

// Says what was written; `change` has been written unless this is a dry run.
ConnectOutcome connect_outcome(const ConnectCommand& command, const clients::Client& client,
                               const clients::ClientFileChange& change, const ConnectTarget& target) {
  ConnectOutcome outcome;
  outcome.path = change.path;
  outcome.backup = change.backup;
  const std::string title(client.title);
  if (change.after == change.before) {
    outcome.action = "unchanged";
    outcome.lines.push_back(title + " is connected already: " + change.path);
  } else {
    outcome.action = "connected";
    if (command.dry_run)
      outcome.diff = without_token(text_diff(change.path, change.before, change.after), target.entry.token);
    if (!command.dry_run) outcome.lines.push_back("connected " + title + ": " + change.path);
    if (!change.backup.empty()) outcome.lines.push_back("backup: " + change.backup);
    if (!target.created_token.empty())
      outcome.lines.push_back("token: a new one of the user " + command.choice.create_token +
                              ", valid until `fairlead tokens revoke " + target.created_token + "`");
    if (!command.dry_run)
      outcome.lines.push_back("Restart " + title + " if it runs. `fairlead connect --undo " +
                              std::string(client.id) + "` takes it back.");
  }
  if (!target.answers)
    outcome.lines.push_back("No gateway answers at " + target.entry.url +
                            " now: start it with `fairlead serve`.");
  return outcome;
}

Result<void> connect_client(const ConnectCommand& command) {
  const Result<const clients::Client*> client = selected_client(command.client);
  if (!client) return client.error();
  if ((*client)->connect_by == clients::ConnectBy::nothing)
    return Error(ErrorKind::validation, std::string((*client)->title) + " cannot be connected");
  const Result<clients::FoundFile> file = selected_file(**client, command.project);
  if (!file) return file.error();
  const bool write = !command.dry_run;
  if (write) {
    const Result<void> prepared = prepare_directory(**client, file->path, command.create || command.project);
    if (!prepared) return prepared;
  }
  // The file is parsed before a token is created for it.
  const Result<clients::ClientFileText> text = clients::read_client_file_text(file->path);
  if (!text) return text.error();
  const Result<json::Raw> existing = clients::find_entry(**client, text->text, command.name);
  if (!existing) return Error(ErrorKind::validation, text->path + ": " + existing.error().message());
  const Result<ConnectTarget> target = connect_target(**client, command.choice, write);
  if (!target) return target.error();
  const Result<json::Raw> value = clients::make_own_entry(**client, target->entry);
  const clients::Entry entry{command.name, value ? *value : json::Raw()};
  const auto edit = [&](std::string_view before) -> Result<std::string> {
    if (!value) return value.error();
    const std::string head = before.empty() ? clients::new_file_text(**client) : std::string();
    return clients::put_entry(**client, head + std::string(before), entry);
  };
  const Result<clients::ClientFileChange> change =
      clients::change_client_file(file->path, edit, command.dry_run);
  if (!change) {
    revoke_created_token(*target);
    return change.error();
  }
  print_outcome(command, connect_outcome(command, **client, *change, *target));
  return {};
}

// ---- undo ------------------------------------------------------------------------------------------------

// Returns whether `text` is what connecting has made of `before`. The entries themselves are not compared as
// text, because a parsed entry of a TOML file does not have the order of its keys.
bool is_unchanged(const clients::Client& client, const std::string& before, const std::string& text,
                  const clients::Entry& entry) {
  const std::string head = before.empty() ? clients::new_file_text(client) : std::string();
  const Result<std::string> connected = clients::put_entry(client, head + before, entry);
  if (!connected || *connected == text) return connected.has_value();
  const Result<std::string> others = clients::remove_entry(client, text, entry.name);
  const Result<std::string> expected_others = clients::remove_entry(client, *connected, entry.name);
  return others && expected_others && *others == *expected_others;
}

// The file to undo, and its entry.
struct UndoneFile {
  clients::ClientFileText now;
  clients::Entry entry;
  std::string backup;  // the newest; empty: none
};

Result<ConnectOutcome> undo_changes(const ConnectCommand& command, const clients::Client& client,
                                    const UndoneFile& file) {
  const clients::ClientFileText& now = file.now;
  ConnectOutcome outcome;
  outcome.path = now.path;
  const Result<clients::ClientFileText> old =
      file.backup.empty() ? clients::ClientFileText() : clients::read_client_file_text(file.backup);
  if (!old) return old.error();
  if (file.backup.empty() && is_unchanged(client, "", now.text, file.entry)) {
    if (!command.dry_run && ::unlink(now.path.c_str()) != 0)
      return Error::from_errno(ErrorKind::io, "cannot remove " + now.path, errno);
    outcome.action = "removed";
    outcome.lines.push_back((command.dry_run ? "would remove " : "removed ") + now.path +
                            ", which has nothing else");
    return outcome;
  }
  if (!file.backup.empty() && is_unchanged(client, old->text, now.text, file.entry)) {
    outcome.action = "restored";
    if (command.dry_run) {
      outcome.diff = text_diff(now.path, now.text, old->text);
      return outcome;
    }
    const Result<void> restored = replace_file(now.path, old->text, 0600);
    if (!restored) return restored.error();
    ::unlink(file.backup.c_str());
    outcome.lines.push_back("restored " + now.path + " from " + file.backup);
    return outcome;
  }
  const auto edit = [&](std::string_view before) {
    return clients::remove_entry(client, before, command.name);
  };
  const Result<clients::ClientFileChange> change =
      clients::change_client_file(now.path, edit, command.dry_run);
  if (!change) return change.error();
  outcome.action = "entry_removed";
  outcome.backup = change->backup;
  if (command.dry_run) outcome.diff = text_diff(change->path, change->before, change->after);
  if (!command.dry_run)
    outcome.lines.push_back("removed the entry `" + command.name + "` from " + change->path +
                            ", which was changed since it was connected");
  return outcome;
}

Result<void> undo_connection(const ConnectCommand& command) {
  const Result<const clients::Client*> client = selected_client(command.client);
  if (!client) return client.error();
  const Result<clients::FoundFile> file = selected_file(**client, command.project);
  if (!file) return file.error();
  const Result<clients::ClientFileText> now = clients::read_client_file_text(file->path);
  if (!now) return now.error();
  const Result<json::Raw> value = clients::find_entry(**client, now->text, command.name);
  if (!value) return Error(ErrorKind::validation, now->path + ": " + value.error().message());
  if (value->absent()) {
    ConnectOutcome outcome;
    outcome.action = "unchanged";
    outcome.path = now->path;
    outcome.lines.push_back(std::string((*client)->title) + " is not connected: " + now->path +
                            " has no entry `" + command.name + "`");
    print_outcome(command, outcome);
    return {};
  }
  const UndoneFile undone{*now, {command.name, *value}, clients::newest_backup(now->path)};
  Result<ConnectOutcome> outcome = undo_changes(command, **client, undone);
  if (!outcome) return outcome.error();
  // The token may be used elsewhere too: it stays.
  if (!command.dry_run && clients::has_token(**client, json::View(*value)))
    outcome->lines.push_back(
        "The token of the entry stays valid: `fairlead tokens list` shows it, and "
        "`fairlead tokens revoke ID` revokes it.");
  print_outcome(command, *outcome);
  return {};
}

// ---- list ------------------------------------------------------------------------------------------------

struct ClientState {
  std::string path;
  std::string state;
  std::string endpoint;  // that the entry leads to, such as "e/discover"; empty: /mcp, or not connected
  std::string detail;
  bool installed = false;
};

// Returns the words of a value that is a text or a list of texts, one in each line.
std::string words_of_value(json::View value) {
  if (!value.is(json::Type::array)) return value.as_string().value_or("") + "\n";
  std::string words;
  value.each_element([&](json::View element) {
    words += element.as_string().value_or("") + "\n";
    return true;
  });
  return words;
}

// Returns the word that follows `--attach` in words_of_value(); empty if there is none.
std::string attached_address(const std::string& words) {
  constexpr std::string_view kOption = "\n--attach\n";
  const std::size_t option = words.find(kOption);
  if (option == std::string::npos) return {};
  const std::size_t begin = option + kOption.size();
  return words.substr(begin, words.find('\n', begin) - begin);
}

// Returns the address of the gateway, if an entry leads to the gateway of `target`: at one of its endpoints,
// or by this program, which attaches to it. Returns nullopt if the entry leads elsewhere.
std::optional<std::string> current_address(json::View entry, json::View wanted, const ConnectTarget& target) {
  const auto if_same = [&](std::string address) {
    return is_same_gateway(address, target.url) ? std::optional<std::string>(std::move(address))
                                                : std::nullopt;
  };
  for (const char* const key : {"url", "httpUrl", "serverUrl", "uri"}) {
    if (!wanted[key].absent()) return if_same(entry[key].as_string().value_or(""));
  }
  std::string words, expected;
  for (const char* const key : {"command", "cmd", "args"}) {
    if (wanted[key].absent()) continue;
    words += words_of_value(entry[key]);
    expected += words_of_value(wanted[key]);
  }
  if (words.substr(0, words.find('\n')) != expected.substr(0, expected.find('\n'))) return std::nullopt;
  if (const std::string address = attached_address(words); !address.empty()) return if_same(address);
  return words == expected ? std::optional<std::string>(target.url) : std::nullopt;
}

ClientState state_of(const clients::Client& client, const ConnectCommand& command) {
  ClientState state;
  const Result<clients::FoundFile> file = selected_file(client, command.project);
  if (!file) return state;
  state.path = file->path;
  std::error_code failed;
  state.installed =
      file->exists || (!command.project && fs::is_directory(fs::path(file->path).parent_path(), failed) &&
                       fs::path(file->path).parent_path() != fs::path(places_here(false).home));
  state.state = "not connected";
  if (!file->exists) return state;
  const Result<clients::ClientFileText> text = clients::read_client_file_text(file->path);
  const Result<json::Raw> entry =
      text ? clients::find_entry(client, text->text, command.name) : Result<json::Raw>(text.error());
  if (!entry) {
    state.state = "unreadable";
    state.detail = entry.error().message();
    return state;
  }
  if (entry->absent()) return state;
  const Result<ConnectTarget> target = connect_target(client, command.choice, false);
  const Result<json::Raw> wanted =
      target ? clients::make_own_entry(client, target->entry) : Result<json::Raw>(target.error());
  std::optional<std::string> address;
  if (wanted) address = current_address(json::View(*entry), json::View(*wanted), *target);
  state.state = address ? "connected" : "outdated";
  if (address) state.endpoint = endpoint_of(*address);
  return state;
}

Result<void> list_clients(const ConnectCommand& command) {
  std::vector<std::vector<std::string>> rows{{"CLIENT", "STATE", "FILE"}};
  json::Writer out;
  out.begin_array();
  for (const clients::Client& client : clients::clients()) {
    if (client.connect_by == clients::ConnectBy::nothing) continue;
    const ClientState state = state_of(client, command);
    if (state.path.empty() || (!state.installed && !command.all)) continue;
    const std::string shown = state.installed ? state.state : "not installed";
    const std::string endpoint = state.endpoint.empty() ? "" : " (" + state.endpoint + ")";
    rows.push_back({std::string(client.id), shown + endpoint, state.path});
    out.begin_object().key("client").string(client.id).key("title").string(client.title);
    out.key("installed").boolean(state.installed).key("state").string(shown);
    out.key("file").string(state.path);
    if (!state.endpoint.empty()) out.key("endpoint").string(state.endpoint);
    if (!state.detail.empty()) out.key("problem").string(state.detail);
    out.end_object();
  }
  out.end_array();
  if (command.json) {
    print_json(out.text());
  } else if (rows.size() == 1) {
    print_text_line("no client was found; --all lists those that are supported");
  } else {
    print_table(rows);
  }
  return {};
}

// The rules of all clients for names of servers have these characters in common.
bool is_entry_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, allowed);
}

int execute_connect(const ConnectCommand& command) {
  if (!is_entry_name(command.name))
    return report(
        Error(ErrorKind::validation, "--name: a name has 1 to 64 letters, digits, hyphens and underscores"));
  if (!command.list && command.client.empty())
    return report(Error(ErrorKind::validation,
                        "name a client, or pass --list; the clients are " + clients::client_ids()));
  const Result<void> done = command.list   ? list_clients(command)
                            : command.undo ? undo_connection(command)
                                           : connect_client(command);
  return done ? kSuccess : report(done.error());
}

}  // namespace

void add_connect(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "connect", "Enter the gateway into the configuration file of a client, such as claude-code or cursor");
  auto connect_command = std::make_shared<ConnectCommand>();
  ConnectCommand& target = *connect_command;
  command->add_option("CLIENT", target.client, "The client; --list --all shows all");
  command->add_option("--name", target.name, "Name of the entry")->capture_default_str();
  command->add_option(
      "--url", target.choice.url,
      "URL of the gateway [that of FAIRLEAD_GATEWAY, of the context in use, or of the gateway that "
      "runs; or http://127.0.0.1:8808/mcp]");
  command->add_option("--endpoint", target.choice.endpoint, "Name of an endpoint of the gateway");
  CLI::Option* const file = command->add_option("--token-file", target.choice.token_file,
                                                "Write the token in this file into the entry");
  CLI::Option* const variable =
      command->add_option("--token-env", target.choice.token_env,
                          "Refer to a variable of the client's environment with the token");
  CLI::Option* const created = command->add_option("--create-token", target.choice.create_token,
                                                   "Create a token for this user of the gateway");
  file->excludes(variable)->excludes(created);
  variable->excludes(created);
  command->add_flag("--stdio", target.choice.stdio,
                    "Have the client start `fairlead serve --stdio`, which attaches to the gateway");
  command->add_flag("--project", target.project, "The file in the current directory instead of the user's");
  command->add_flag("--create", target.create, "Also if the directory of the client does not exist");
  command->add_flag("--dry-run", target.dry_run, "Show the change and write nothing");
  CLI::Option* const undo_flag = command->add_flag(
      "--undo", target.undo, "Restore the file, or remove the entry if the file has changed");
  CLI::Option* const list_flag =
      command->add_flag("--list", target.list, "Show the installed clients and their state");
  undo_flag->excludes(list_flag);
  command->add_flag("--all", target.all, "With --list: also clients that are not installed");
  command->add_flag("--json", target.json, "Print JSON");
  command->callback([connect_command, &status] { status = execute_connect(*connect_command); });
}

}  // namespace fairlead::cli
