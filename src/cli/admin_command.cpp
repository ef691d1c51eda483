#include "cli/admin_command.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/printable.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/terminal.hpp"

namespace fairlead::cli {

// ---- commands --------------------------------------------------------------------------------------------

void AdminOptions::add_to(CLI::App& command) {
  command.add_flag("--json", json, "Print the JSON of the admin API");
  command.add_flag("-q,--quiet", quiet, "Print names only, and no messages about success");
  gateway.add_to(command);
}

void AdminOptions::add_yes_to(CLI::App& command) {
  command.add_flag("-y,--yes", yes, "Do not ask for confirmation");
}

Result<bool> AdminOptions::confirm(std::string_view question) const {
  return confirm_destructive(question, yes, gateway.wait_limit());
}

std::shared_ptr<ProgressLine> AdminOptions::show_progress(const AdminClient& client,
                                                          std::string state) const {
  std::shared_ptr<ProgressLine> line = quiet ? nullptr : ProgressLine::create(client.loop());
  if (line) line->show(std::move(state));
  return line;
}

bool creates_rows(std::string_view command) {
  return command == "add" || command == "import" || command == "set";
}

CLI::App& command_group(CLI::App& program, const std::string& name, const std::string& description) {
  for (CLI::App* const existing : program.get_subcommands({})) {
    if (existing->get_name() == name) return *existing;
  }
  CLI::App& group = *program.add_subcommand(name, description);
  group.require_subcommand(1);
  return group;
}

CLI::App& add_admin_subcommand(CLI::App& group, const std::string& name, const std::string& description,
                               const std::function<void(CLI::App&)>& add_options,
                               std::function<void()> callback) {
  CLI::App& command = *group.add_subcommand(name, description);
  add_options(command);
  command.callback(std::move(callback));
  return command;
}

// ---- printing --------------------------------------------------------------------------------------------

RowColumn member_column(std::string header, std::string member) {
  return {std::move(header), [member = std::move(member)](json::View row) { return one_line(row[member]); }};
}

RowColumn yes_no_column(std::string header, std::string member) {
  return {std::move(header), [member = std::move(member)](json::View row) {
            return std::string(row[member].as_bool().value_or(false) ? "yes" : "no");
          }};
}

void print_rows(const AdminOptions& options, const RowType& type, const std::vector<json::Raw>& rows) {
  if (options.json) return print_json_array(rows);
  if (options.quiet) {
    for (const json::Raw& row : rows) print_text_line(printable_line(string_of(json::View(row), type.name)));
    return;
  }
  if (rows.empty()) return print_note(options, type.empty_hint);
  std::vector<std::string> headers;
  for (const RowColumn& column : type.columns) headers.push_back(column.header);
  Table table(std::move(headers));
  for (const json::Raw& row : rows) {
    std::vector<std::string> cells;
    for (const RowColumn& column : type.columns) cells.push_back(column.text(json::View(row)));
    table.add(cells);
  }
  table.print();
}

void print_row(const AdminOptions& options, const json::Raw& row) {
  if (options.json) return print_json(indented_json(json::View(row)));
  print_text(readable(json::View(row)));
}

void print_change(const AdminOptions& options, const std::string& sentence, const json::Raw& row) {
  if (options.json && !row.absent()) return print_json(row.text());
  if (!options.quiet && !options.json) print_text_line(printable_line(sentence));
}

void print_removal(const AdminOptions& options, const std::string& sentence, const std::string& member,
                   const std::string& name) {
  json::Writer removed;
  removed.begin_object().key("removed").boolean(true).key(member).string(name).end_object();
  print_change(options, sentence, removed.finish());
}

void print_note(const AdminOptions& options, const std::string& line) {
  if (!options.quiet) std::fprintf(stderr, "%s\n", printable_line(line).c_str());
}

void print_warning(const std::string& line) {
  std::fprintf(stderr, "warning: %s\n", printable_line(line).c_str());
}

void add_query(std::string& path, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  path += path.find('?') == std::string::npos ? '?' : '&';
  (path += name) += '=';
  path += path_segment(value);
}

// ---- rows ------------------------------------------------------------------------------------------------

Task<Result<int>> list_rows(const AdminOptions& options, RowType type, AdminClientPtr client,
                            std::string query) {
  const Result<std::vector<json::Raw>> rows = co_await client->list(type.path + query);
  if (!rows) co_return rows.error();
  print_rows(options, type, *rows);
  co_return kSuccess;
}

Task<Result<int>> show_row(const AdminOptions& options, RowType type, AdminClientPtr client,
                           std::string name) {
  const Result<json::Raw> row = co_await client->get(type.row_path(name));
  if (!row) co_return row.error();
  print_row(options, *row);
  co_return kSuccess;
}

Task<Result<int>> add_row(const AdminOptions& options, RowType type, AdminClientPtr client, json::Raw body) {
  const Result<json::Raw> row = co_await client->post(type.path, std::move(body));
  if (!row) co_return row.error();
  print_change(options, "Added the " + type.noun + " `" + string_of(json::View(*row), type.name) + "`.",
               *row);
  co_return kSuccess;
}

Task<Result<int>> patch_row(const AdminOptions& options, RowType type, AdminClientPtr client,
                            std::string name, json::Raw patch) {
  const Result<json::Raw> row = co_await client->patch(type.row_path(name), std::move(patch));
  if (!row) co_return row.error();
  print_change(options, "Changed the " + type.noun + " `" + name + "`.", *row);
  co_return kSuccess;
}

namespace {

std::string removal_question(const RowType& type, const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "`" : ", `") + printable_line(name) + "`";
  return "Remove the " + (names.size() == 1 ? type.noun : type.plural) + " " + all + "?";
}

}  // namespace

Task<Result<int>> remove_rows(const AdminOptions& options, RowType type, AdminClientPtr client,
                              std::vector<std::string> names) {
  for (const std::string& name : names) {
    const Result<json::Raw> row = co_await client->get(type.row_path(name));
    if (!row) co_return row.error();
  }
  const Result<bool> confirmed = options.confirm(removal_question(type, names));
  if (!confirmed) co_return confirmed.error();
  if (!*confirmed) co_return kRemoteError;
  for (const std::string& name : names) {
    const Result<json::Raw> removed = co_await client->remove(type.row_path(name));
    if (!removed) co_return removed.error();
    print_removal(options, "Removed the " + type.noun + " `" + name + "`.", type.name, name);
  }
  co_return kSuccess;
}

Task<Result<std::string>> id_of(AdminClientPtr client, std::string path, std::string name) {
  const Result<json::Raw> row = co_await client->get(path + "/" + path_segment(name));
  if (!row) co_return row.error();
  co_return string_of(json::View(*row), "id");
}

Task<Result<json::Raw>> ids_of(AdminClientPtr client, std::string path, std::vector<std::string> names) {
  json::Writer ids;
  ids.begin_array();
  for (const std::string& name : names) {
    const Result<std::string> id = co_await id_of(client, path, name);
    if (!id) co_return id.error();
    ids.string(*id);
  }
  ids.end_array();
  co_return ids.finish();
}

}  // namespace fairlead::cli
