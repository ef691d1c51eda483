// Shared by the commands that manage a gateway: their common options, and what they do with rows of any kind.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/admin_client.hpp"
#include "cli/json_text.hpp"
#include "cli/progress_line.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::cli {

struct AdminOptions {
  GatewayChoice gateway;
  bool json = false;   // print what the API returned
  bool quiet = false;  // print names only, or nothing
  bool yes = false;    // do not ask before a destructive step

  void add_to(CLI::App& command);
  void add_yes_to(CLI::App& command);
  // Asks before a destructive step, unless --yes is given; see confirm_destructive().
  Result<bool> confirm(std::string_view question) const;
  // Shows on the terminal what the command waits for, until the line is destroyed. Returns null without a
  // terminal. The line must be hidden before anything is printed.
  std::shared_ptr<ProgressLine> show_progress(const AdminClient& client, std::string state) const;
};

// Returns the group of commands `name` of the program, such as `fairlead servers`, and creates it if it does
// not exist.
CLI::App& command_group(CLI::App& program, const std::string& name, const std::string& description);

// Adds a subcommand. `Command` has AdminOptions options, void add_to(CLI::App&), and
// static Task<Result<int>> run(const Command&, AdminClientPtr), which returns the exit status.
template <class Command>
CLI::App& add_admin_command(CLI::App& group, const std::string& name, const std::string& description,
                            int& status);

// How rows of a kind are shown.
struct RowColumn {
  std::string header;
  std::function<std::string(json::View row)> text;
};
struct RowType {
  std::string noun;    // "server"
  std::string plural;  // "servers"
  std::string path;    // "/mcp/servers"
  std::vector<RowColumn> columns;
  std::string empty_hint;     // what to do if there are none
  std::string name = "name";  // the member that -q prints

  std::string row_path(std::string_view name_or_id) const { return path + "/" + path_segment(name_or_id); }
};
// Returns columns for members: their values as one line.
RowColumn member_column(std::string header, std::string member);
RowColumn yes_no_column(std::string header, std::string member);

// Print to stdout, as the options say.
void print_rows(const AdminOptions& options, const RowType& type, const std::vector<json::Raw>& rows);
void print_row(const AdminOptions& options, const json::Raw& row);
// Prints `sentence` after a change, or the row that the API has returned with --json.
void print_change(const AdminOptions& options, const std::string& sentence, const json::Raw& row);
// Prints `sentence` after a removal, or {"removed":true,MEMBER:NAME} with --json.
void print_removal(const AdminOptions& options, const std::string& sentence, const std::string& member,
                   const std::string& name);
// Prints a line to stderr unless -q is given.
void print_note(const AdminOptions& options, const std::string& line);
// Prints "warning: " and the line to stderr.
void print_warning(const std::string& line);

// Appends "name=value" to the query of a path; does nothing if the value is empty.
void add_query(std::string& path, std::string_view name, std::string_view value);

Task<Result<int>> list_rows(const AdminOptions& options, RowType type, AdminClientPtr client,
                            std::string query);
Task<Result<int>> show_row(const AdminOptions& options, RowType type, AdminClientPtr client,
                           std::string name);
Task<Result<int>> add_row(const AdminOptions& options, RowType type, AdminClientPtr client, json::Raw body);
Task<Result<int>> patch_row(const AdminOptions& options, RowType type, AdminClientPtr client,
                            std::string name, json::Raw patch);
// Asks first, unless --yes is given.
Task<Result<int>> remove_rows(const AdminOptions& options, RowType type, AdminClientPtr client,
                              std::vector<std::string> names);
// Lets the user edit the row in an editor, and sends the difference. If the row has changed meanwhile, fails
// and keeps the edited document in a file.
Task<Result<int>> edit_row(const AdminOptions& options, RowType type, AdminClientPtr client,
                           std::string name);

// Returns the ids of the rows with these names or ids, as a JSON array.
Task<Result<json::Raw>> ids_of(AdminClientPtr client, std::string path, std::vector<std::string> names);
Task<Result<std::string>> id_of(AdminClientPtr client, std::string path, std::string name);

// Returns whether a command of this name may create the database that --db names: other commands would find
// nothing in a new one.
bool creates_rows(std::string_view command);

// Calls run_admin() for a command, so that the template above needs no CLI11.
CLI::App& add_admin_subcommand(CLI::App& group, const std::string& name, const std::string& description,
                               const std::function<void(CLI::App&)>& add_options,
                               std::function<void()> callback);

template <class Command>
CLI::App& add_admin_command(CLI::App& group, const std::string& name, const std::string& description,
                            int& status) {
  auto command = std::make_shared<Command>();
  command->options.gateway.may_create_database = creates_rows(name);
  return add_admin_subcommand(
      group, name, description,
      [&](CLI::App& app) {
        command->add_to(app);
        command->options.add_to(app);
      },
      [command, &status] {
        status = run_admin(command->options.gateway,
                           [&](AdminClientPtr client) { return Command::run(*command, std::move(client)); });
      });
}

}  // namespace fairlead::cli
