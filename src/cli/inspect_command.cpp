// fairlead inspect: shows the identity, capabilities, instructions and entry counts of an MCP server.
#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>

#include "cli/mcp_target.hpp"
#include "fairlead/rpc/codes.hpp"

namespace fairlead::cli {

namespace {

// How many entries a list of the server has.
struct EntryCount {
  const char* key;                   // in JSON
  const char* label;                 // in the table
  std::optional<std::size_t> count;  // nullopt: the server lacks the capability, or see `error`
  std::optional<Error> error;
};

// Servers with resources need not have templates.
bool is_missing_templates(const std::string& key, const Error& error) {
  return key == "resourceTemplates" && error.detail().rpc_code == rpc::kMethodNotFound;
}

Task<EntryCount> count_entries(std::shared_ptr<mcp::Client> client, EntryCount entry, bool supported,
                               std::string method) {
  if (!supported) co_return entry;
  const Result<std::vector<json::Raw>> entries = co_await client->list(std::move(method), entry.key);
  if (entries) {
    entry.count = entries->size();
  } else if (!is_missing_templates(entry.key, entries.error())) {
    entry.error = entries.error();
  }
  co_return entry;
}

Task<std::vector<EntryCount>> count_all_entries(std::shared_ptr<mcp::Client> client) {
  struct List {
    const char* key;
    const char* label;
    const char* method;
    bool supported;
  };
  const json::View capabilities = client->server_capabilities();
  const bool resources = !capabilities["resources"].absent();
  const bool skills = resources && !client->server_extension(mcp::kSkillsExtension).absent();
  const std::array<List, 5> lists{
      List{"tools", "tools", "tools/list", !capabilities["tools"].absent()},
      List{"resources", "resources", "resources/list", resources},
      List{"resourceTemplates", "templates", "resources/templates/list", resources},
      List{"prompts", "prompts", "prompts/list", !capabilities["prompts"].absent()},
      List{"skills", "skills", "skills/list", skills}};
  std::vector<EntryCount> counts;
  for (const List& list : lists) {
    EntryCount entry{list.key, list.label, {}, {}};
    EntryCount counted = co_await count_entries(client, std::move(entry), list.supported, list.method);
    counts.push_back(std::move(counted));
  }
  co_return counts;
}

std::string format_time(Clock::duration duration) {
  const double ms = std::chrono::duration<double, std::milli>(duration).count();
  char text[32];
  ms < 1000 ? std::snprintf(text, sizeof text, "%.0f ms", ms)
            : std::snprintf(text, sizeof text, "%.1f s", ms / 1000);
  return text;
}

struct Inspection {
  std::vector<EntryCount> counts;
  Clock::duration connected;
  Clock::duration listed;
};

json::Raw to_json(const mcp::Client& client, const Inspection& inspection) {
  json::Writer out;
  out.begin_object().key("era").string(is_modern(client.revision()) ? "modern" : "legacy");
  out.key("revision").string(to_string(client.revision()));
  if (!client.server_info().absent()) out.key("server").raw(client.server_info().text());
  if (!client.server_capabilities().absent())
    out.key("capabilities").raw(client.server_capabilities().text());
  if (!client.instructions().empty()) out.key("instructions").string(client.instructions());
  bool failed = false;
  for (const EntryCount& entry : inspection.counts) {
    out.key(entry.key);
    entry.count ? out.unsigned_integer(*entry.count) : out.raw("null");
    failed = failed || entry.error;
  }
  if (failed) {
    out.key("errors").begin_object();
    for (const EntryCount& entry : inspection.counts) {
      if (entry.error) out.key(entry.key).string(entry.error->message());
    }
    out.end_object();
  }
  out.end_object();
  return out.finish();
}

std::string cell_of(const EntryCount& entry) {
  if (entry.error) return "failed: " + summary(entry.error->message());
  return entry.count ? std::to_string(*entry.count) : "-";
}

void print_as_table(const mcp::Client& client, const Inspection& inspection) {
  const json::View info = client.server_info();
  std::string capabilities;
  client.server_capabilities().each_member([&](std::string_view key, bool, json::View) {
    capabilities += (capabilities.empty() ? "" : ", ") + std::string(key);
    return true;
  });
  const std::string era = is_modern(client.revision()) ? "modern" : "legacy";
  std::vector<std::vector<std::string>> rows = {
      {"server", info["name"].as_string().value_or("") + " " + info["version"].as_string().value_or("")},
      {"revision", std::string(to_string(client.revision())) + " (" + era + " era)"},
      {"capabilities", capabilities}};
  for (const EntryCount& entry : inspection.counts) rows.push_back({entry.label, cell_of(entry)});
  rows.push_back({"connected in", format_time(inspection.connected)});
  rows.push_back({"listed in", format_time(inspection.listed)});
  print_table(rows);
  if (client.instructions().empty()) return;
  print_text_line("\ninstructions:");
  print_text_line(printable_text(client.instructions()));
}

// Returns the exit status of the first list that failed.
int report_failed_lists(const std::vector<EntryCount>& counts) {
  int status = kSuccess;
  for (const EntryCount& entry : counts) {
    if (!entry.error) continue;
    std::fprintf(stderr, "fairlead: cannot list the %s of the server\n", entry.label);
    const int failed = report(*entry.error);
    if (status == kSuccess) status = failed;
  }
  return status;
}

Task<Result<int>> inspect(const McpTarget& target, Clock::time_point started,
                          std::shared_ptr<mcp::Client> client) {
  const Clock::time_point connected = Clock::now();
  target.show_progress("listing");
  std::vector<EntryCount> counts = co_await count_all_entries(client);
  target.hide_progress();
  const Inspection inspection{std::move(counts), connected - started, Clock::now() - connected};
  target.json ? print_json(to_json(*client, inspection).text()) : print_as_table(*client, inspection);
  co_return report_failed_lists(inspection.counts);
}

}  // namespace

void add_inspect(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "inspect", "Show the identity, capabilities, instructions and entry counts of an MCP server");
  auto target = std::make_shared<McpTarget>();
  target->add_to(*command);
  command->footer("Fails if one of the lists fails; the other counts are printed.");
  command->callback([target, &status] {
    const Clock::time_point started = Clock::now();
    status = run_with_client(*target, [&](std::shared_ptr<mcp::Client> client) {
      return inspect(*target, started, std::move(client));
    });
  });
}

}  // namespace fairlead::cli
