// fairlead status: how a gateway is, with its problems first.
#include <CLI/CLI.hpp>

#include "base/printable.hpp"
#include "cli/admin_command.hpp"
#include "cli/output.hpp"

namespace fairlead::cli {

namespace {

struct GatewayReport {
  json::Raw health;
  json::Raw readiness;
  bool knows_changes = false;
  std::size_t open_changes = 0;
  std::size_t quarantined = 0;
};

Task<Result<json::Raw>> read_report(AdminClientPtr client, std::string path) {
  AdminRequest request("GET", std::move(path));
  request.outside_api = true;
  Result<AdminReply> reply = co_await client->send(std::move(request));
  if (!reply) co_return reply.error();
  co_return std::move(reply->body);
}

// Clients that may not read drift get a report without it.
Task<void> count_changes(AdminClientPtr client, GatewayReport& report) {
  const Result<std::vector<json::Raw>> changes = co_await client->list("/drift?status=open");
  if (!changes) co_return;
  report.knows_changes = true;
  report.open_changes = changes->size();
  for (const json::Raw& change : *changes) {
    if (json::View(change)["quarantined"].as_bool().value_or(false)) ++report.quarantined;
  }
}

Task<Result<GatewayReport>> read_all(AdminClientPtr client) {
  GatewayReport report;
  Result<json::Raw> health = co_await read_report(client, "/health");
  if (!health) co_return health.error();
  report.health = std::move(*health);
  Result<json::Raw> readiness = co_await read_report(client, "/readyz");
  if (!readiness) co_return readiness.error();
  report.readiness = std::move(*readiness);
  co_await count_changes(client, report);
  co_return report;
}

std::string uptime_text(std::int64_t seconds) {
  const std::int64_t days = seconds / 86'400;
  const std::int64_t hours = seconds / 3600 % 24;
  const std::int64_t minutes = seconds / 60 % 60;
  if (days > 0) return std::to_string(days) + " d " + std::to_string(hours) + " h";
  if (hours > 0) return std::to_string(hours) + " h " + std::to_string(minutes) + " min";
  if (minutes > 0) return std::to_string(minutes) + " min";
  return std::to_string(seconds) + " s";
}

// Returns what is wrong with a server; empty if nothing is.
std::string server_problem(json::View server) {
  const std::string state = string_of(server, "status");
  if (state != "failed" && state != "degraded") return {};
  const std::string name = printable_line(string_of(server, "name"));
  std::string why = printable_line(string_of(server, "lastError"));
  why = why.substr(0, why.find("\\n"));
  const std::string code = string_of(server, "lastErrorCode");
  const bool lists_are_wrong = why.empty() && code.empty() && !server["lists"].absent();
  if (why.empty()) why = code.empty() ? printable_line(one_line(server["lists"])) : code;
  return "server " + name + " has " + (state == "failed" ? "failed" : "a problem") +
         (why.empty() ? "" : ": " + why) + "\n  see: fairlead servers test " + name +
         (lists_are_wrong ? ", fairlead servers tools " + name : "");
}

std::vector<std::string> problems_of(const GatewayReport& report) {
  std::vector<std::string> problems;
  const json::View readiness(report.readiness);
  if (string_of(readiness, "status") != "ok")
    problems.push_back(printable_line(string_of(readiness, "reason")));
  json::View(report.health)["servers"].each_element([&](json::View server) {
    const std::string problem = server_problem(server);
    if (!problem.empty()) problems.push_back(problem);
    return true;
  });
  if (report.open_changes > 0)
    problems.push_back("changes of tools to review: " + std::to_string(report.open_changes) + ", " +
                       std::to_string(report.quarantined) +
                       " of them quarantined\n  see: fairlead drift list");
  return problems;
}

// Returns the members of an object of numbers that are not 0, such as "2 ready, 1 failed".
std::string counts_text(json::View counts) {
  std::string text;
  counts.each_member([&](std::string_view state, bool, json::View count) {
    if (count.as_int().value_or(0) > 0)
      text += (text.empty() ? "" : ", ") + std::string(count.text()) + " " + printable_line(state);
    return true;
  });
  return text.empty() ? "none" : text;
}

void print_report(const GatewayReport& report, const GatewayAddress& address) {
  for (const std::string& problem : problems_of(report)) print_text_line("! " + problem);
  const json::View health(report.health);
  const json::View counts = health["counts"];
  print_text_line("gateway    " + printable_line(address.url) + ", " + string_of(health, "status") +
                  ", version " + printable_line(string_of(health, "version")) + ", up " +
                  uptime_text(health["uptimeSeconds"].as_int().value_or(0)));
  print_text_line("servers    " + counts_text(counts["servers"]));
  print_text_line("offered    " + one_line(counts["tools"]) + " tools, " + one_line(counts["resources"]) +
                  " resources, " + one_line(counts["prompts"]) + " prompts");
  print_text_line("processes  " + one_line(health["processes"]));
  print_text_line("clients    " + one_line(counts["sessions"]) + " sessions, " + one_line(counts["calls"]) +
                  " calls, " + one_line(counts["waiting"]) + " waiting");
  const std::string database = string_of(json::View(report.readiness), "status");
  print_text_line("database   " + std::string(database == "ok" ? "ok" : "see above"));
}

// Prints the members of /health, and with them what else decides about the status.
void print_report_json(const GatewayReport& report) {
  json::Writer writer;
  writer.begin_object();
  json::View(report.health).each_member([&](std::string_view key, bool escaped, json::View value) {
    writer.key(escaped ? json::unescape(key) : std::string(key)).raw(value.text());
    return true;
  });
  writer.key("readiness").raw(report.readiness.text());
  if (report.knows_changes) {
    writer.key("drift").begin_object().key("open").unsigned_integer(report.open_changes);
    writer.key("quarantined").unsigned_integer(report.quarantined).end_object();
  }
  writer.end_object();
  print_json(writer.finish().text());
}

struct StatusCommand {
  AdminOptions options;

  void add_to(CLI::App& app) {
    app.footer("The status is 1 if a server has failed or the gateway is not ready.");
  }
  static Task<Result<int>> run(const StatusCommand& command, AdminClientPtr client) {
    if (client->direct()) {
      const Result<int> direct = co_await run_direct(command, client);
      co_return direct;
    }
    const Result<GatewayReport> report = co_await read_all(client);
    if (!report) co_return report.error();
    const json::View health(report->health);
    const bool ok =
        string_of(health, "status") == "ok" && string_of(json::View(report->readiness), "status") == "ok";
    if (command.options.json) {
      print_report_json(*report);
    } else if (!command.options.quiet) {
      print_report(*report, client->address());
    }
    co_return ok ? kSuccess : kRemoteError;
  }
  // No gateway runs: says so, and what the database has.
  static Task<Result<int>> run_direct(const StatusCommand& command, AdminClientPtr client) {
    const Result<std::vector<json::Raw>> servers = co_await client->list("/mcp/servers");
    if (!servers) co_return servers.error();
    if (command.options.json) {
      json::Writer writer;
      writer.begin_object().key("status").string("stopped").key("servers").unsigned_integer(servers->size());
      writer.end_object();
      print_json(writer.finish().text());
    } else if (!command.options.quiet) {
      print_text_line("! no gateway serves this database\n  start one: fairlead serve");
      print_text_line("servers    " + std::to_string(servers->size()) + " in the database");
    }
    co_return kRemoteError;
  }
};

}  // namespace

void add_status(CLI::App& program, int& status) {
  add_admin_command<StatusCommand>(program, "status", "Show how a gateway is, with its problems first",
                                   status);
}

}  // namespace fairlead::cli
