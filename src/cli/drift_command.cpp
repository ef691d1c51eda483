// fairlead drift: changes of tools that servers have made, and their approval.
#include <CLI/CLI.hpp>
#include <map>

#include "base/printable.hpp"
#include "cli/admin_command.hpp"
#include "cli/output.hpp"

namespace fairlead::cli {

namespace {

using ServerNames = std::map<std::string, std::string>;  // by id

Task<ServerNames> server_names(AdminClientPtr client) {
  ServerNames names;
  const Result<std::vector<json::Raw>> rows = co_await client->list("/mcp/servers");
  if (!rows) co_return names;
  for (const json::Raw& row : *rows)
    names[string_of(json::View(row), "id")] = string_of(json::View(row), "name");
  co_return names;
}

std::string drift_state(json::View row) {
  const bool quarantined = row["quarantined"].as_bool().value_or(false);
  return string_of(row, "status") + (quarantined ? ", quarantined" : "");
}

RowType drift_rows(const ServerNames& names) {
  RowType type;
  type.noun = "change";
  type.plural = "changes";
  type.path = "/drift";
  type.name = "id";
  type.empty_hint = "No server has changed what it offers.";
  type.columns = {
      {"SERVER",
       [names](json::View row) {
         const auto found = names.find(string_of(row, "server"));
         return found == names.end() ? string_of(row, "server") : found->second;
       }},
      member_column("KIND", "kind"),
      member_column("NAME", "name"),
      {"CHANGE",
       [](json::View row) { return row["before"].absent() ? std::string("new") : std::string("changed"); }},
      {"STATUS", drift_state},
      {"DETECTED", [](json::View row) { return string_of(row, "detectedAt").substr(0, 16); }},
      member_column("ID", "id")};
  return type;
}

// Says which changes there are besides those of the status, of which there is none.
std::string other_changes_hint(const std::string& status, const std::vector<json::Raw>& rows) {
  std::map<std::string, std::size_t> counts;
  for (const json::Raw& row : rows) ++counts[string_of(json::View(row), "status")];
  std::string others;
  for (const auto& [name, count] : counts)
    others += (others.empty() ? "" : ", ") + std::to_string(count) + " " + name;
  if (others.empty()) return "No server has changed what it offers.";
  return "No " + status + " changes; " + others + ": fairlead drift list --status all";
}

struct DriftList {
  AdminOptions options;
  std::string server, status = "open";

  void add_to(CLI::App& app) {
    app.add_option("--server", server, "Only changes of this server");
    app.add_option("--status", status, "Only changes of this status")
        ->check(CLI::IsMember({"open", "approved", "rejected", "reverted", "all"}))
        ->capture_default_str();
  }
  static Task<Result<int>> run(const DriftList& command, AdminClientPtr client) {
    std::string query;
    add_query(query, "server", command.server);
    add_query(query, "status", command.status == "all" ? "" : command.status);
    ServerNames names;
    if (!command.options.json && !command.options.quiet) names = co_await server_names(client);
    RowType type = drift_rows(names);
    const Result<std::vector<json::Raw>> rows = co_await client->list(type.path + query);
    if (!rows) co_return rows.error();
    if (rows->empty() && !command.options.json && !command.options.quiet) {
      std::string all = type.path;
      add_query(all, "server", command.server);
      const Result<std::vector<json::Raw>> others = co_await client->list(all);
      if (!others) co_return others.error();
      type.empty_hint = other_changes_hint(command.status, *others);
    }
    print_rows(command.options, type, *rows);
    co_return kSuccess;
  }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// Returns the lines of both documents without the common ones at the beginning and the end.
std::string difference_text(json::View before, json::View after) {
  const std::vector<std::string> old_lines = lines_of(before.absent() ? "" : indented_json(before));
  const std::vector<std::string> new_lines = lines_of(after.absent() ? "" : indented_json(after));
  const auto [old_begin, new_begin] = std::ranges::mismatch(old_lines, new_lines);
  auto old_end = old_lines.end();
  auto new_end = new_lines.end();
  while (old_end != old_begin && new_end != new_begin && *(old_end - 1) == *(new_end - 1)) {
    --old_end;
    --new_end;
  }
  std::string text;
  for (auto line = old_begin; line != old_end; ++line) text += "- " + printable_line(*line) + "\n";
  for (auto line = new_begin; line != new_end; ++line) text += "+ " + printable_line(*line) + "\n";
  return text;
}

void print_drift(json::View row) {
  print_text_line(printable_line(string_of(row, "kind")) + " " + printable_line(string_of(row, "name")) +
                  ", " + drift_state(row) + ", detected " + string_of(row, "detectedAt"));
  print_text(difference_text(row["before"], row["after"]));
}

struct DriftShow {
  AdminOptions options;
  std::string id;

  void add_to(CLI::App& app) {
    app.add_option("ID", id, "Id of the change, as `fairlead drift list` shows it")->required();
  }
  static Task<Result<int>> run(const DriftShow& command, AdminClientPtr client) {
    const Result<json::Raw> row = co_await client->get("/drift/" + path_segment(command.id));
    if (!row) co_return row.error();
    if (command.options.json) {
      print_json(row->text());
    } else {
      print_drift(json::View(*row));
    }
    co_return kSuccess;
  }
};

// Approves or rejects what was read: if the server changes the entry meanwhile, the gateway refuses.
Task<Result<int>> resolve_change(const AdminOptions& options, AdminClientPtr client, std::string id,
                                 bool approves) {
  const std::string path = "/drift/" + path_segment(id);
  AdminRequest read("GET", path);
  const Result<AdminReply> row = co_await client->send(std::move(read));
  if (!row) co_return row.error();
  if (!options.yes && !options.json) print_drift(json::View(row->body));
  const Result<bool> confirmed = options.confirm(approves ? "Approve this change?" : "Reject this change?");
  if (!confirmed) co_return confirmed.error();
  if (!*confirmed) co_return kRemoteError;
  AdminRequest request("POST", path + (approves ? "/approve" : "/reject"));
  request.if_match = row->etag;
  const Result<AdminReply> resolved = co_await client->send(std::move(request));
  if (!resolved) co_return resolved.error();
  print_change(options,
               std::string(approves ? "Approved" : "Rejected") + " the change of `" +
                   string_of(json::View(resolved->body), "name") + "`.",
               resolved->body);
  co_return kSuccess;
}

template <bool Approves>
struct DriftResolve {
  AdminOptions options;
  std::vector<std::string> ids;

  void add_to(CLI::App& app) {
    app.add_option("ID", ids, "Ids of the changes, as `fairlead drift list` shows them")->required();
    options.add_yes_to(app);
  }
  static Task<Result<int>> run(const DriftResolve& command, AdminClientPtr client) {
    for (const std::string& id : command.ids) {
      const Result<int> resolved = co_await resolve_change(command.options, client, id, Approves);
      if (!resolved) co_return resolved.error();
      const int outcome = *resolved;
      if (outcome != kSuccess) co_return outcome;
    }
    co_return kSuccess;
  }
};

}  // namespace

void add_drift(CLI::App& program, int& status) {
  CLI::App& drift = command_group(program, "drift", "Review tools that servers have changed");
  add_admin_command<DriftList>(drift, "list", "List the changes", status);
  add_admin_command<DriftShow>(drift, "show", "Show a change: - the approved entry, + the new one", status);
  add_admin_command<DriftResolve<true>>(drift, "approve", "Offer the entries as they are now", status);
  add_admin_command<DriftResolve<false>>(drift, "reject", "Do not offer the changed entries", status);
}

}  // namespace fairlead::cli
