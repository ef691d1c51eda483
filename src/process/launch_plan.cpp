#include "process/launch_plan.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <optional>
#include <span>

#include "fairlead/process/failure.hpp"
#include "process/secrets.hpp"
#include "process/spawn_errors.hpp"

extern "C" char** environ;

namespace fairlead::process {

namespace {

// What execvp looks through when there is no PATH.
constexpr std::string_view kDefaultPath = "/bin:/usr/bin";

// Variables of this name configure this process, not its children.
constexpr std::string_view kOwnPrefix = "FAIRLEAD_";

bool has_nul(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

Result<void> check(const ProcessSpec& spec) {
  if (spec.command.empty()) return spawn_error(failure::bad_spec, "no command to start", EINVAL);
  bool bad = has_nul(spec.command) || has_nul(spec.cwd) || has_nul(spec.manifest.path) ||
             std::ranges::any_of(spec.args, has_nul);
  const FileAccess& files = spec.containment.files;
  for (const auto* paths : {&files.read, &files.write, &files.execute})
    bad = bad || std::ranges::any_of(*paths, has_nul);
  for (const auto* variables : {&spec.env, &spec.secret_env}) {
    for (const auto& [name, value] : *variables) {
      bad = bad || has_nul(name) || has_nul(value);
      if (name.empty() || name.contains('='))
        return spawn_error(failure::bad_spec, "not a name for a variable: `" + name + "`", EINVAL);
    }
  }
  if (bad)
    return spawn_error(failure::bad_spec,
                       "a NUL byte in the command line, directory or environment of `" + spec.command + "`",
                       EINVAL);
  return {};
}

std::string current_directory() {
  char buffer[PATH_MAX];
  // None when it has been removed; the child then starts where the keeper is.
  return ::getcwd(buffer, sizeof buffer) ? buffer : "";
}

std::string absolute(const std::string& cwd) {
  if (cwd.starts_with('/')) return cwd;
  const std::string here = current_directory();
  return cwd.empty() || here.empty() ? here + cwd : here + '/' + cwd;
}

std::string_view value_of(const std::vector<std::string>& env, std::string_view name,
                          std::string_view otherwise) {
  for (const std::string_view variable : env) {
    if (variable.starts_with(name) && variable.substr(name.size()).starts_with('=')) {
      return variable.substr(name.size() + 1);
    }
  }
  return otherwise;
}

std::string joined(std::string_view directory, std::string_view name, const std::string& cwd) {
  std::string path;
  // An entry that is empty or relative means the working directory, here the child's.
  if (!directory.starts_with('/')) path = cwd.empty() ? "." : cwd;
  if (!path.empty() && !directory.empty()) path += '/';
  path += directory;
  if (!path.ends_with('/')) path += '/';
  return path += name;
}

// Which program this is, for whoever reads a manifest. Without secrets: not the environment, and redacted.
std::string digest_of(const SpawnOrder& order) {
  std::string text = order.path + '\0' + order.cwd + '\0';
  for (const std::string& argument : order.args) (text += order.last_words.redactor.redact(argument)) += '\0';
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (::EVP_Digest(text.data(), text.size(), hash, &size, ::EVP_sha256(), nullptr) != 1) return {};
  std::string digest = "sha256:";
  for (const unsigned char byte : std::span(hash, size)) {
    digest += "0123456789abcdef"[byte >> 4];
    digest += "0123456789abcdef"[byte & 15];
  }
  return digest;
}

bool lists(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

}  // namespace

std::vector<std::string> child_environment(const ProcessSpec& spec,
                                           const std::map<std::string, std::string>& secrets) {
  std::vector<std::string> env;
  for (char** variable = environ; variable && *variable; ++variable) {
    const std::string_view entry(*variable);
    const std::string name(entry.substr(0, entry.find('=')));
    if (spec.env.contains(name) || secrets.contains(name) || name.starts_with(kOwnPrefix)) continue;
    const bool inherited =
        spec.inherit_only ? lists(*spec.inherit_only, name) : !lists(spec.withheld_env, name);
    if (!inherited) continue;
    env.emplace_back(entry);
  }
  for (const auto& [name, value] : spec.env) {
    if (name != keeper::kCookieName && !secrets.contains(name)) env.push_back(name + '=' + value);
  }
  for (const auto& [name, value] : secrets) {
    if (name != keeper::kCookieName) env.push_back(name + '=' + value);
  }
  return env;
}

Result<std::string> find_command(const std::string& command, std::string_view path, const std::string& cwd) {
  if (command.contains('/')) return command;
  std::string refused;
  for (std::string_view rest = path;;) {
    const std::size_t colon = rest.find(':');
    std::string candidate = joined(rest.substr(0, colon), command, cwd);
    if (is_file(candidate)) {
      if (::faccessat(AT_FDCWD, candidate.c_str(), X_OK, AT_EACCESS) == 0) return candidate;
      if (refused.empty()) refused = std::move(candidate);
    }
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  if (!refused.empty()) return spawn_error(failure::not_executable, "not executable: " + refused, EACCES);
  return spawn_error(failure::command_not_found,
                     "command not found: " + command + " (looked in PATH=" + std::string(path) + ")", ENOENT);
}

namespace {

Result<void> complete(SpawnOrder& order, const ProcessSpec& spec) {
  LastWords& last_words = order.last_words;
  const std::string search_path(value_of(order.env, "PATH", kDefaultPath));
  if (!spec.command.contains('/')) last_words.search_path = search_path;
  Result<std::string> path = find_command(spec.command, search_path, order.cwd);
  if (!path) return path.error();
  order.path = std::move(*path);
  last_words.command_line = quoted_command_line(order.path, spec.args);
  order.args.reserve(spec.args.size() + 1);
  order.args.push_back(spec.command);
  order.args.insert(order.args.end(), spec.args.begin(), spec.args.end());
  order.name = last_words.redactor.redact(spec.name.empty() ? spec.command : spec.name);
  Result<BeltPlan> belts = plan_belts(order.name, spec.containment, order.path, order.cwd);
  if (!belts) return belts.error();
  order.belts = std::move(*belts);
  order.manifest = spec.manifest;
  if (order.manifest.path.empty()) return {};
  order.belts.want(keeper::with_manifest,
                   order.manifest.required ? Requirement::required : Requirement::best_effort);
  // The child opens it, which is where the keeper is.
  order.manifest.path = absolute(order.manifest.path);
  order.digest = digest_of(order);
  return {};
}

}  // namespace

Result<SpawnOrder> plan_launch(const ProcessSpec& spec) {
  const Result<void> valid = check(spec);
  if (!valid) return valid.error();
  SpawnOrder order;
  order.last_words.command_line = quoted_command_line(spec.command, spec.args);
  std::map<std::string, std::string> secrets;
  std::vector<std::string> redacted = spec.secrets;
  std::optional<Error> missing;  // told of when all are known that must not be told
  for (const auto& [name, reference] : spec.secret_env) {
    Result<std::string> value = resolve_secret(name, reference, redacted);
    if (value) {
      secrets.emplace(name, std::move(*value));
    } else if (!missing) {
      missing = value.error();
    }
  }
  order.last_words.redactor = Redactor(redacted);
  if (missing) return order.last_words.on(*missing, {});
  order.cwd = absolute(spec.cwd);
  order.env = child_environment(spec, secrets);
  const Result<void> completed = complete(order, spec);
  if (!completed) return order.last_words.on(completed.error(), {});
  return order;
}

}  // namespace fairlead::process
