// fairlead config: the settings of a gateway, and the check of a configuration file.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/printable.hpp"
#include "cli/admin_command.hpp"
#include "cli/output.hpp"
#include "fairlead/gateway/config.hpp"
#include "gateway/config_check.hpp"

namespace fairlead::cli {

namespace {

std::string setting_limits(json::View row) {
  const std::string choices = one_line(row["choices"]);
  if (!choices.empty()) return choices;
  const std::string minimum = one_line(row["minimum"]);
  const std::string maximum = one_line(row["maximum"]);
  return minimum.empty() && maximum.empty() ? string_of(row, "type") : minimum + " to " + maximum;
}

RowType setting_rows() {
  RowType type;
  type.noun = "setting";
  type.plural = "settings";
  type.path = "/config";
  type.name = "key";
  type.empty_hint = "No settings match.";
  type.columns = {member_column("KEY", "key"),
                  {"VALUE",
                   [](json::View row) {
                     const bool changed = !row["isDefault"].as_bool().value_or(true);
                     return one_line(row["value"]) + (changed ? " *" : "");
                   }},
                  {"ALLOWED", setting_limits},
                  {"DESCRIPTION", [](json::View row) { return string_of(row, "description"); }}};
  return type;
}

struct ConfigList {
  AdminOptions options;
  std::string category;

  void add_to(CLI::App& app) {
    app.add_option("CATEGORY", category, "The part of the keys before the dot: mcp, auth, registry");
    app.footer("A value that is not the default has a *.");
  }
  static Task<Result<int>> run(const ConfigList& command, AdminClientPtr client) {
    std::string query;
    add_query(query, "category", command.category);
    const Result<int> listed = co_await list_rows(command.options, setting_rows(), client, query);
    co_return listed;
  }
};

struct ConfigGet {
  AdminOptions options;
  std::string key;

  void add_to(CLI::App& app) { app.add_option("KEY", key, "Key of the setting")->required(); }
  static Task<Result<int>> run(const ConfigGet& command, AdminClientPtr client) {
    const Result<json::Raw> row = co_await client->get(setting_rows().row_path(command.key));
    if (!row) co_return row.error();
    if (command.options.quiet && !command.options.json) {
      print_text_line(one_line(json::View(*row)["value"]));
    } else {
      print_row(command.options, *row);
    }
    co_return kSuccess;
  }
};

// Returns the JSON for a value that was given as text. Only the type of the setting tells a text from a
// number.
Result<json::Raw> setting_value(json::View definition, const std::string& text) {
  const std::string type = string_of(definition, "type");
  if (type != "boolean" && type != "integer" && type != "string list") return json::string(text);
  Result<json::Raw> value = json::Raw::parse(text);
  if (value) return value;
  return Error(ErrorKind::validation, "`" + text + "` is no " +
                                          (type == "string list" ? "list such as [\"a\",\"b\"]"
                                           : type == "boolean"   ? "true or false"
                                                                 : "number"));
}

struct ConfigSet {
  AdminOptions options;
  std::string key, value;

  void add_to(CLI::App& app) {
    app.add_option("KEY", key, "Key of the setting")->required();
    app.add_option("VALUE", value, "New value, such as 30s, 100 or true")->required();
  }
  static Task<Result<int>> run(const ConfigSet& command, AdminClientPtr client) {
    const std::string path = setting_rows().row_path(command.key);
    const Result<json::Raw> definition = co_await client->get(path);
    if (!definition) co_return definition.error();
    const Result<json::Raw> value = setting_value(json::View(*definition), command.value);
    if (!value) co_return value.error();
    json::Writer body;
    body.begin_object().key("value").raw(*value).end_object();
    const Result<json::Raw> row = co_await client->put(path, body.finish());
    if (!row) co_return row.error();
    print_change(command.options,
                 command.key + " is " + one_line(json::View(*row)["value"]) + ", which applies " +
                     string_of(json::View(*row), "applies") + ".",
                 *row);
    co_return kSuccess;
  }
};

struct ConfigReset {
  AdminOptions options;
  std::string key;

  void add_to(CLI::App& app) { app.add_option("KEY", key, "Key of the setting")->required(); }
  static Task<Result<int>> run(const ConfigReset& command, AdminClientPtr client) {
    const std::string path = setting_rows().row_path(command.key);
    const Result<json::Raw> removed = co_await client->remove(path);
    if (!removed) co_return removed.error();
    const Result<json::Raw> row = co_await client->get(path);
    if (!row) co_return row.error();
    print_change(command.options,
                 command.key + " is " + one_line(json::View(*row)["value"]) + ", the default.", *row);
    co_return kSuccess;
  }
};

// ---- check -----------------------------------------------------------------------------------------------

// Prints all problems of a file that has at least the problem `first`.
int report_problems(const std::string& path, const Error& first) {
  Result<std::vector<Error>> problems = gateway::config_file_problems(path);
  if (!problems || problems->empty()) problems = std::vector<Error>{first};
  for (const Error& problem : *problems)
    std::fprintf(stderr, "%s\n", printable_text(problem.message()).c_str());
  return kUsageError;
}

int check_config(const std::string& path) {
  const Result<gateway::Config> config = gateway::load_config(path);
  if (!config) return report_problems(path, config.error());
  for (const std::string& warning : config->warnings)
    std::fprintf(stderr, "warning: %s\n", printable_line(warning).c_str());
  const std::size_t servers = config->servers.size();
  print_text_line(path + (config->warnings.empty() ? ": no problems, " : ": usable, ") +
                  std::to_string(servers) + (servers == 1 ? " server" : " servers"));
  return kSuccess;
}

}  // namespace

void add_config(CLI::App& program, int& status) {
  CLI::App& config =
      command_group(program, "config", "Show and change settings of a gateway, and check a file");
  add_admin_command<ConfigList>(config, "list", "List the settings", status);
  add_admin_command<ConfigGet>(config, "get", "Show a setting; with -q only its value", status);
  add_admin_command<ConfigSet>(config, "set", "Change a setting", status);
  add_admin_command<ConfigReset>(config, "reset", "Set a setting to its default", status);
  CLI::App* const check =
      config.add_subcommand("check", "Check a file for `fairlead serve --config` without starting anything");
  auto path = std::make_shared<std::string>();
  check->add_option("FILE", *path, "The file: TOML, or the mcpServers JSON of a desktop client")->required();
  check->callback([path, &status] { status = check_config(*path); });
}

}  // namespace fairlead::cli
