#include "cli/contexts.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "admin/admin_token.hpp"
#include "base/read_file.hpp"
#include "base/replace_file.hpp"
#include "base/suggestion.hpp"
#include "cli/shell.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/loop/descriptor.hpp"
#include "json/config_reader.hpp"

namespace fairlead::cli {

namespace {

constexpr FileLimit kContextsFileLimit{"max_contexts_file_bytes", 1u << 20};

Result<std::string> config_directory() {
  if (const char* const config = std::getenv("XDG_CONFIG_HOME"); config && *config == '/')
    return std::string(config) + "/fairlead";
  if (const char* const home = std::getenv("HOME"); home && *home == '/')
    return std::string(home) + "/.config/fairlead";
  return Error(ErrorKind::validation,
               "this user has no home directory; set XDG_CONFIG_HOME to the directory for configurations");
}

void read_context(json::ConfigReader& in, GatewayContext& context) {
  in.string("gateway", context.gateway)
      .string("database", context.database)
      .string("tokenFile", context.token_file)
      .string("tokenVariable", context.token_variable)
      .string("tokenCommand", context.token_command)
      .string("caFile", context.ca_file)
      .finish();
  if (context.gateway.empty() == context.database.empty()) in.fail("", "needs `gateway` or `database`");
}

void write_member(json::Writer& writer, std::string_view key, const std::string& value) {
  if (!value.empty()) writer.key(key).string(value);
}

std::string contexts_text(const Contexts& contexts) {
  json::Writer writer;
  writer.begin_object();
  write_member(writer, "current", contexts.current);
  writer.key("contexts").begin_object();
  for (const auto& [name, context] : contexts.all) {
    writer.key(name).begin_object();
    write_member(writer, "gateway", context.gateway);
    write_member(writer, "database", context.database);
    write_member(writer, "tokenFile", context.token_file);
    write_member(writer, "tokenVariable", context.token_variable);
    write_member(writer, "tokenCommand", context.token_command);
    write_member(writer, "caFile", context.ca_file);
    writer.end_object();
  }
  writer.end_object().end_object();
  return writer.text() + "\n";
}

std::string trimmed_line(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

Result<Contexts> parse_contexts(const std::string& path, const std::string& text) {
  const Result<json::Raw> document = json::Raw::parse(text);
  if (!document) return Error(ErrorKind::validation, path + " is not JSON: " + document.error().message());
  Contexts contexts;
  std::optional<Error> problem;
  json::ConfigReader reader(json::View(*document), "", problem);
  reader.string("current", contexts.current)
      .table("contexts",
             [&](json::ConfigReader& table) {
               table.each_table([&](const std::string& name, json::ConfigReader& context) {
                 read_context(context, contexts.all[name]);
               });
             })
      .finish();
  if (problem) return Error(ErrorKind::validation, path + ": " + problem->message());
  return contexts;
}

}  // namespace

Result<std::string> contexts_path() {
  const Result<std::string> directory = config_directory();
  if (!directory) return directory;
  return *directory + "/contexts.json";
}

Result<Contexts> load_contexts() {
  const Result<std::string> path = contexts_path();
  if (!path) return Contexts();
  if (::access(path->c_str(), F_OK) != 0 && errno == ENOENT) return Contexts();
  const Result<std::string> text = read_regular_file(*path, kContextsFileLimit);
  if (!text) return Error(ErrorKind::validation, *path + ": " + text.error().message());
  return parse_contexts(*path, *text);
}

Result<void> change_contexts(const std::function<Result<void>(Contexts&)>& change) {
  const Result<std::string> path = contexts_path();
  if (!path) return path.error();
  const std::string directory = std::filesystem::path(*path).parent_path().string();
  const Result<void> created = admin::create_private_directory(directory);
  if (!created) return created;
  // The directory is locked, because the file is replaced.
  const UniqueFd lock(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0)
    return Error::from_errno(ErrorKind::io, "cannot lock " + directory, errno);
  Result<Contexts> contexts = load_contexts();
  if (!contexts) return contexts.error();
  const Result<void> changed = change(*contexts);
  if (!changed) return changed;
  return replace_file(*path, contexts_text(*contexts), 0600);
}

Result<GatewayContext> find_context(const Contexts& contexts, const std::string& name) {
  const auto found = contexts.all.find(name);
  if (found != contexts.all.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, context] : contexts.all) names.push_back(known);
  const std::string_view closest = closest_word(name, names);
  return Error(ErrorKind::validation,
               "there is no context `" + name + "`" +
                   (closest.empty() ? "; see `fairlead context list`"
                                    : " (did you mean `" + std::string(closest) + "`?)"));
}

Result<std::string> context_token(const std::string& name, const GatewayContext& context) {
  if (!context.token_file.empty()) return admin::read_admin_token(context.token_file);
  if (!context.token_variable.empty()) {
    const char* const value = std::getenv(context.token_variable.c_str());
    if (value && *value != '\0') return std::string(value);
    return Error(ErrorKind::validation, "the variable " + context.token_variable +
                                            ", which has the token of the context `" + name +
                                            "`, is not set");
  }
  if (context.token_command.empty()) return std::string();
  const Result<std::string> output = run_shell(context.token_command);
  if (!output)
    return Error(ErrorKind::validation,
                 "the command for the token of the context `" + name + "`: " + output.error().message());
  const std::string token = trimmed_line(*output);
  if (!token.empty()) return token;
  return Error(ErrorKind::validation,
               "the command for the token of the context `" + name + "` printed nothing");
}

}  // namespace fairlead::cli
