// fairlead connect: enters the gateway into the configuration file of a client.
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>

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
  if (!value) return value.error();
  const clients::Entry entry{command.name, *value};
  const auto edit = [&](std::string_view before) {
    const std::string head = before.empty() ? clients::new_file_text(**client) : std::string();
    return clients::put_entry(**client, head + std::string(before), entry);
  };
  const Result<clients::ClientFileChange> change =
      clients::change_client_file(file->path, edit, command.dry_run);
  if (!change) return change.error();
  if (change->after == change->before) {
    print_text_line(std::string((*client)->title) + " is connected already: " + change->path);
  } else if (command.dry_run) {
    print_text(without_token(text_diff(change->path, change->before, change->after), target->entry.token));
  } else {
    print_text_line("connected " + std::string((*client)->title) + ": " + change->path);
    if (!change->backup.empty()) print_text_line("backup: " + change->backup);
    print_text_line("Restart " + std::string((*client)->title) + " if it runs. `fairlead connect --undo " +
                    std::string((*client)->id) + "` takes it back.");
  }
  if (!target->answers)
    print_text_line("No gateway answers at " + target->entry.url + " now: start it with `fairlead serve`.");
  return {};
}

// ---- undo ------------------------------------------------------------------------------------------------

// Returns whether `text` is what connecting has made of `before`.
bool is_unchanged(const clients::Client& client, const std::string& before, const std::string& text,
                  const clients::Entry& entry) {
  const std::string head = before.empty() ? clients::new_file_text(client) : std::string();
  const Result<std::string> connected = clients::put_entry(client, head + before, entry);
  return connected && *connected == text;
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
    print_text_line(std::string((*client)->title) + " is not connected: " + now->path + " has no entry `" +
                    command.name + "`");
    return {};
  }
  const clients::Entry entry{command.name, *value};
  const std::string backup = clients::newest_backup(now->path);
  const Result<clients::ClientFileText> old =
      backup.empty() ? clients::ClientFileText() : clients::read_client_file_text(backup);
  if (!old) return old.error();
  if (backup.empty() && is_unchanged(**client, "", now->text, entry)) {
    if (!command.dry_run && ::unlink(now->path.c_str()) != 0)
      return Error::from_errno(ErrorKind::io, "cannot remove " + now->path, errno);
    print_text_line((command.dry_run ? "would remove " : "removed ") + now->path +
                    ", which has nothing else");
    return {};
  }
  if (!backup.empty() && is_unchanged(**client, old->text, now->text, entry)) {
    if (command.dry_run) {
      print_text(text_diff(now->path, now->text, old->text));
      return {};
    }
    const Result<void> restored = replace_file(now->path, old->text, 0600);
    if (!restored) return restored;
    ::unlink(backup.c_str());
    print_text_line("restored " + now->path + " from " + backup);
    return {};
  }
  const auto edit = [&](std::string_view before) {
    return clients::remove_entry(**client, before, command.name);
  };
  const Result<clients::ClientFileChange> change =
      clients::change_client_file(file->path, edit, command.dry_run);
  if (!change) return change.error();
  if (command.dry_run) print_text(text_diff(change->path, change->before, change->after));
  if (!command.dry_run)
    print_text_line("removed the entry `" + command.name + "` from " + change->path +
                    ", which was changed since it was connected");
  return {};
}

// ---- list ------------------------------------------------------------------------------------------------

struct ClientState {
  std::string path;
  std::string state;
  std::string detail;
  bool installed = false;
};

// Whether an entry leads to this gateway: to its URL, or to this program.
bool is_current(json::View entry, json::View wanted) {
  for (const char* const key : {"url", "httpUrl", "serverUrl", "uri", "command", "cmd"}) {
    const json::View expected = wanted[key];
    if (!expected.absent()) return entry[key].text() == expected.text();
  }
  return false;
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
  const bool current = wanted && is_current(json::View(*entry), json::View(*wanted));
  state.state = current ? "connected" : "outdated";
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
    rows.push_back({std::string(client.id), shown, state.path});
    out.begin_object().key("client").string(client.id).key("title").string(client.title);
    out.key("installed").boolean(state.installed).key("state").string(shown);
    out.key("file").string(state.path);
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
  command->add_option("--url", target.choice.url,
                      "URL of the gateway [that of the gateway that runs, or http://127.0.0.1:8808/mcp]");
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
  command->add_flag("--json", target.json, "With --list: print JSON");
  command->callback([connect_command, &status] { status = execute_connect(*connect_command); });
}

}  // namespace fairlead::cli
