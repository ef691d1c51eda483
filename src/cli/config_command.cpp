// fairlead config: the settings of a gateway, and the check of a configuration file.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>

#include "base/printable.hpp"
#include "cli/admin_command.hpp"
#include "cli/output.hpp"
#include "fairlead/gateway/config.hpp"
#include "gateway/config_check.hpp"
#include "json/config_reader.hpp"

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

// Returns the number of bytes for a text such as "20M".
Result<json::Raw> size_value(const std::string& text) {
  json::Writer object;
  object.begin_object().key("size").string(text).end_object();
  const json::Raw document = object.finish();
  std::optional<Error> problem;
  std::optional<std::uint64_t> bytes;
  json::ConfigReader(json::View(document), "", problem).bytes("size", bytes);
  if (!bytes)
    return Error(ErrorKind::validation, "`" + text + "` is no number of bytes, such as 20971520 or 20M");
  json::Writer number;
  number.unsigned_integer(*bytes);
  return number.finish();
}

// Returns the JSON for a value that was given as text. Only the type of the setting tells a text from a
// number.
Result<json::Raw> setting_value(json::View definition, const std::string& text) {
  const std::string type = string_of(definition, "type");
  if (type != "boolean" && type != "integer" && type != "string list") return json::string(text);
  Result<json::Raw> value = json::Raw::parse(text);
  if (value) return value;
  if (type == "integer" && string_of(definition, "key").ends_with("_bytes")) return size_value(text);
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
    app.add_option("VALUE", value, "New value, such as 30s, 100, 20M or true")->required();
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

struct ConfigCheck {
  std::string path;
  bool json = false;
};

struct CheckedFile {
  std::vector<std::string> problems;  // empty: the gateway can use the file
  std::vector<std::string> warnings;
  std::size_t servers = 0;
};

CheckedFile checked_file(const std::string& path) {
  CheckedFile checked;
  const Result<gateway::Config> config = gateway::load_config(path);
  if (config) {
    checked.warnings = config->warnings;
    checked.servers = config->servers.size();
    return checked;
  }
  const Result<std::vector<Error>> problems = gateway::config_file_problems(path);
  if (problems)
    for (const Error& problem : *problems) checked.problems.push_back(problem.message());
  if (checked.problems.empty()) checked.problems.push_back(config.error().message());
  return checked;
}

void print_checked_json(const std::string& path, const CheckedFile& checked) {
  const auto write_texts = [](json::Writer& writer, const char* key, const std::vector<std::string>& texts) {
    writer.key(key).begin_array();
    for (const std::string& text : texts) writer.string(text);
    writer.end_array();
  };
  json::Writer writer;
  writer.begin_object().key("file").string(path).key("ok").boolean(checked.problems.empty());
  writer.key("servers").unsigned_integer(checked.servers);
  write_texts(writer, "problems", checked.problems);
  write_texts(writer, "warnings", checked.warnings);
  writer.end_object();
  print_json(writer.finish().text());
}

void print_checked(const std::string& path, const CheckedFile& checked) {
  for (const std::string& problem : checked.problems)
    std::fprintf(stderr, "%s\n", printable_text(problem).c_str());
  for (const std::string& warning : checked.warnings)
    std::fprintf(stderr, "warning: %s\n", printable_line(warning).c_str());
  if (!checked.problems.empty()) return;
  print_text_line(path + (checked.warnings.empty() ? ": no problems, " : ": usable, ") +
                  std::to_string(checked.servers) + (checked.servers == 1 ? " server" : " servers"));
}

int check_config(const ConfigCheck& command) {
  const CheckedFile checked = checked_file(command.path);
  if (command.json) {
    print_checked_json(command.path, checked);
  } else {
    print_checked(command.path, checked);
  }
  return checked.problems.empty() ? kSuccess : kUsageError;
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
  auto command = std::make_shared<ConfigCheck>();
  check->add_option("FILE", command->path, "The file: TOML, or the mcpServers JSON of a desktop client")
      ->required();
  check->add_flag("--json", command->json, "Print the problems and warnings as JSON");
  check->callback([command, &status] { status = check_config(*command); });
}

}  // namespace fairlead::cli
