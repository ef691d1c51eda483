// fairlead context: which gateway the other commands talk to, and with which token.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "base/printable.hpp"
#include "cli/admin_command.hpp"
#include "cli/common.hpp"
#include "cli/contexts.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/terminal.hpp"

namespace fairlead::cli {

namespace {

// Says where the token comes from. Tokens are never printed.
std::string token_source(const GatewayContext& context) {
  if (!context.token_file.empty()) return "file " + context.token_file;
  if (!context.token_variable.empty()) return "variable " + context.token_variable;
  if (!context.token_command.empty()) return "command " + context.token_command;
  return "-";
}

std::string gateway_of(const GatewayContext& context) {
  return context.gateway.empty() ? context.database : context.gateway;
}

void write_context(json::Writer& writer, const std::string& name, const GatewayContext& context,
                   bool current) {
  writer.begin_object().key("name").string(name).key("current").boolean(current);
  for (const auto& [key, value] :
       {std::pair("gateway", &context.gateway), std::pair("database", &context.database),
        std::pair("tokenFile", &context.token_file), std::pair("tokenVariable", &context.token_variable),
        std::pair("tokenCommand", &context.token_command), std::pair("caFile", &context.ca_file)}) {
    if (!value->empty()) writer.key(key).string(*value);
  }
  writer.end_object();
}

int list_contexts(bool json) {
  const Result<Contexts> contexts = load_contexts();
  if (!contexts) return report(contexts.error());
  if (json) {
    std::vector<json::Raw> rows;
    for (const auto& [name, context] : contexts->all) {
      json::Writer writer;
      write_context(writer, name, context, name == contexts->current);
      rows.push_back(writer.finish());
    }
    print_json_array(rows);
    return kSuccess;
  }
  if (contexts->all.empty()) {
    std::fputs(
        "No contexts. Without one, commands use the gateway of this machine. Add one: fairlead context add "
        "NAME --gateway URL --token-file FILE\n",
        stderr);
    return kSuccess;
  }
  Table table({"", "NAME", "GATEWAY", "TOKEN FROM"});
  for (const auto& [name, context] : contexts->all)
    table.add({name == contexts->current ? "*" : "", name, gateway_of(context), token_source(context)});
  table.print();
  return kSuccess;
}

int show_context(std::string name, bool json) {
  const Result<Contexts> contexts = load_contexts();
  if (!contexts) return report(contexts.error());
  if (name.empty()) name = contexts->current;
  if (name.empty()) {
    std::fputs("No context is in use.\n", stderr);
    return kRemoteError;
  }
  const Result<GatewayContext> context = find_context(*contexts, name);
  if (!context) return report(context.error());
  json::Writer writer;
  write_context(writer, name, *context, name == contexts->current);
  const json::Raw row = writer.finish();
  if (json) {
    print_json(row.text());
  } else {
    print_text(readable(json::View(row)));
  }
  return kSuccess;
}

struct ContextArguments {
  std::string name;
  bool json = false;
  bool none = false;
  bool yes = false;
};

// Prints the row of a context after a change with --json, or else the sentence.
void print_context_change(bool json, const std::string& sentence, const json::Raw& row) {
  if (json) return print_json(row.text());
  print_text_line(sentence);
}

json::Raw context_row(const std::string& name, const GatewayContext& context, bool current) {
  json::Writer writer;
  write_context(writer, name, context, current);
  return writer.finish();
}

int use_context(const ContextArguments& arguments) {
  const std::string& name = arguments.name;
  if (name.empty() != arguments.none)
    return report(Error(ErrorKind::validation, "give the name of a context, or --none"));
  json::Raw row = *json::Raw::parse(R"({"name":null,"current":false})");
  const Result<void> changed = change_contexts([&](Contexts& contexts) -> Result<void> {
    contexts.current = name;
    if (arguments.none) return {};
    const Result<GatewayContext> context = find_context(contexts, name);
    if (!context) return context.error();
    row = context_row(name, *context, true);
    return {};
  });
  if (!changed) return report(changed.error());
  print_context_change(arguments.json,
                       arguments.none ? "Commands use the gateway of this machine."
                                      : "Commands use the context `" + printable_line(name) + "`.",
                       row);
  return kSuccess;
}

struct NewContext {
  std::string name;
  GatewayContext context;
  bool use = false;
  bool json = false;
  bool yes = false;
};

std::optional<Error> problem_of(const NewContext& added, const Contexts& contexts) {
  const GatewayContext& context = added.context;
  if (context.gateway.empty() == context.database.empty())
    return Error(ErrorKind::validation, "give either --gateway URL or --db DATABASE");
  const int sources =
      !context.token_file.empty() + !context.token_variable.empty() + !context.token_command.empty();
  if (sources > 1)
    return Error(ErrorKind::validation, "--token-file, --token-env and --token-command exclude each other");
  if (contexts.all.size() >= kMaxContexts)
    return Error(ErrorKind::validation,
                 "there are max_contexts (" + std::to_string(kMaxContexts) + ") contexts");
  if (!context.gateway.starts_with("unix:") && !context.gateway.starts_with("http://") &&
      !context.gateway.starts_with("https://") && !context.gateway.empty())
    return Error(ErrorKind::validation,
                 "`" + context.gateway + "` is not the URL of a gateway, such as http://127.0.0.1:8808");
  return std::nullopt;
}

// Makes relative paths absolute, because a context is used in other directories.
void make_paths_absolute(GatewayContext& context) {
  constexpr std::string_view kSqlite = "sqlite:";
  const auto absolute = [](const std::string& path) {
    std::error_code unusable;
    const std::filesystem::path found = std::filesystem::absolute(path, unusable);
    return unusable ? path : found.lexically_normal().string();
  };
  for (std::string* const path : {&context.token_file, &context.ca_file}) {
    if (!path->empty()) *path = absolute(*path);
  }
  if (context.database.starts_with(kSqlite))
    context.database = std::string(kSqlite) + absolute(context.database.substr(kSqlite.size()));
  if (context.gateway.starts_with("unix:")) context.gateway = "unix:" + absolute(context.gateway.substr(5));
}

// Returns whether to add the context: asks if it replaces one that differs. Fails if it is not valid.
Result<bool> confirm_addition(const NewContext& added) {
  const Result<Contexts> contexts = load_contexts();
  if (!contexts) return contexts.error();
  if (const std::optional<Error> problem = problem_of(added, *contexts)) return *problem;
  const auto existing = contexts->all.find(added.name);
  if (existing == contexts->all.end() || existing->second == added.context) return true;
  return confirm_destructive("Replace the context `" + printable_line(added.name) + "`?", added.yes,
                             AdminClient::kDefaultTimeout);
}

int add_context(NewContext& added) {
  make_paths_absolute(added.context);
  const Result<bool> confirmed = confirm_addition(added);
  if (!confirmed) return report(confirmed.error());
  if (!*confirmed) return kRemoteError;
  bool is_new = false;
  bool is_current = false;
  const Result<void> changed = change_contexts([&](Contexts& contexts) -> Result<void> {
    is_new = contexts.all.insert_or_assign(added.name, added.context).second;
    if (added.use) contexts.current = added.name;
    is_current = contexts.current == added.name;
    return {};
  });
  if (!changed) return report(changed.error());
  const std::string name = printable_line(added.name);
  print_context_change(added.json,
                       (is_new ? "Added the context `" : "Replaced the context `") + name + "`." +
                           (is_current ? "" : " Use it: fairlead context use " + name),
                       context_row(added.name, added.context, is_current));
  return kSuccess;
}

int remove_context(const ContextArguments& arguments) {
  const std::string& name = arguments.name;
  const Result<Contexts> known = load_contexts();
  if (!known) return report(known.error());
  const Result<GatewayContext> context = find_context(*known, name);
  if (!context) return report(context.error());
  const Result<bool> confirmed = confirm_destructive("Remove the context `" + printable_line(name) + "`?",
                                                     arguments.yes, AdminClient::kDefaultTimeout);
  if (!confirmed) return report(confirmed.error());
  if (!*confirmed) return kRemoteError;
  const Result<void> changed = change_contexts([&](Contexts& contexts) -> Result<void> {
    contexts.all.erase(name);
    if (contexts.current == name) contexts.current.clear();
    return {};
  });
  if (!changed) return report(changed.error());
  json::Writer removed;
  removed.begin_object().key("removed").boolean(true).key("name").string(name).end_object();
  print_context_change(arguments.json, "Removed the context `" + printable_line(name) + "`.",
                       removed.finish());
  return kSuccess;
}

void add_reading_commands(CLI::App& group, int& status) {
  auto list = std::make_shared<ContextArguments>();
  CLI::App* const list_command = group.add_subcommand("list", "List the contexts; * is in use");
  list_command->add_flag("--json", list->json, "Print JSON");
  list_command->callback([list, &status] { status = list_contexts(list->json); });
  auto show = std::make_shared<ContextArguments>();
  CLI::App* const show_command = group.add_subcommand("show", "Show a context");
  show_command->add_option("NAME", show->name, "Name of the context; without it, the one in use");
  show_command->add_flag("--json", show->json, "Print JSON");
  show_command->callback([show, &status] { status = show_context(show->name, show->json); });
}

void add_changing_commands(CLI::App& group, int& status) {
  auto use = std::make_shared<ContextArguments>();
  CLI::App* const use_command = group.add_subcommand("use", "Use a context from now on");
  use_command->add_option("NAME", use->name, "Name of the context");
  use_command->add_flag("--none", use->none, "Use the gateway of this machine again");
  use_command->add_flag("--json", use->json, "Print JSON");
  use_command->callback([use, &status] { status = use_context(*use); });
  auto removed = std::make_shared<ContextArguments>();
  CLI::App* const remove_command = group.add_subcommand("remove", "Forget a context");
  remove_command->add_option("NAME", removed->name, "Name of the context")->required();
  remove_command->add_flag("--json", removed->json, "Print JSON");
  remove_command->add_flag("-y,--yes", removed->yes, "Do not ask for confirmation");
  remove_command->callback([removed, &status] { status = remove_context(*removed); });
}

void add_adding_command(CLI::App& group, int& status) {
  auto added = std::make_shared<NewContext>();
  CLI::App& command = *group.add_subcommand("add", "Add or replace a context");
  command.add_option("NAME", added->name, "Name of the context")->required();
  command.add_option("--gateway", added->context.gateway,
                     "URL of the gateway, such as https://mcp.example.com");
  command.add_option("--db", added->context.database, "Database (sqlite:PATH) instead of a gateway");
  command.add_option("--token-file", added->context.token_file, "File with the token, mode 0600");
  command
      .add_option("--token-env", added->context.token_variable, "Variable of the environment with the token")
      ->type_name("NAME");
  command.add_option("--token-command", added->context.token_command,
                     "Command that prints the token, such as \"pass show fairlead\"");
  command.add_option("--ca-file", added->context.ca_file, "CA certificates (PEM) to trust in addition");
  command.add_flag("--use", added->use, "Use the context from now on");
  command.add_flag("--json", added->json, "Print JSON");
  command.add_flag("-y,--yes", added->yes, "Do not ask before a context of this name is replaced");
  command.callback([added, &status] { status = add_context(*added); });
}

}  // namespace

void add_contexts(CLI::App& program, int& status) {
  CLI::App& group = command_group(program, "context", "Choose the gateway that the commands talk to");
  add_reading_commands(group, status);
  add_adding_command(group, status);
  add_changing_commands(group, status);
}

}  // namespace fairlead::cli
