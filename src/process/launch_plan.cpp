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

// The search path of execvp if PATH is not set.
constexpr std::string_view kDefaultPath = "/bin:/usr/bin";

// Variables with this prefix configure this process and are not inherited by children.
constexpr std::string_view kFairleadPrefix = "FAIRLEAD_";

bool has_nul(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

Result<void> validate(const ProcessSpec& spec) {
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
        return spawn_error(failure::bad_spec, "invalid name of an environment variable: `" + name + "`",
                           EINVAL);
    }
  }
  if (bad)
    return spawn_error(failure::bad_spec,
                       "NUL byte in the command line, directory or environment of `" + spec.command + "`",
                       EINVAL);
  return {};
}

std::string current_directory() {
  char buffer[PATH_MAX];
  // Empty if the directory has been removed; the child then starts in the keeper's directory.
  return ::getcwd(buffer, sizeof buffer) ? buffer : "";
}

std::string make_absolute(const std::string& path) {
  if (path.starts_with('/')) return path;
  const std::string current = current_directory();
  return path.empty() || current.empty() ? current + path : current + '/' + path;
}

std::string_view value_of(const std::vector<std::string>& env, std::string_view name,
                          std::string_view fallback) {
  for (const std::string_view variable : env) {
    if (variable.starts_with(name) && variable.substr(name.size()).starts_with('=')) {
      return variable.substr(name.size() + 1);
    }
  }
  return fallback;
}

std::string join_path(std::string_view directory, std::string_view name, const std::string& cwd) {
  std::string path;
  // An empty or relative entry of PATH is relative to the working directory, here that of the child.
  if (!directory.starts_with('/')) path = cwd.empty() ? "." : cwd;
  if (!path.empty() && !directory.empty()) path += '/';
  path += directory;
  if (!path.ends_with('/')) path += '/';
  return path += name;
}

// Returns a digest that identifies the program to readers of the manifest. It contains no secrets: it omits
// the environment, and the arguments are redacted.
std::string digest_of(const LaunchPlan& plan) {
  std::string text = plan.path + '\0' + plan.cwd + '\0';
  for (const std::string& argument : plan.args)
    (text += plan.error_context.redactor.redact(argument)) += '\0';
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

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_regular_file(const std::string& path) {
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
    if (spec.env.contains(name) || secrets.contains(name) || name.starts_with(kFairleadPrefix)) continue;
    const bool inherited =
        spec.inherit_only ? contains(*spec.inherit_only, name) : !contains(spec.withheld_env, name);
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
  std::string not_executable;
  for (std::string_view rest = path;;) {
    const std::size_t colon = rest.find(':');
    std::string candidate = join_path(rest.substr(0, colon), command, cwd);
    if (is_regular_file(candidate)) {
      if (::faccessat(AT_FDCWD, candidate.c_str(), X_OK, AT_EACCESS) == 0) return candidate;
      if (not_executable.empty()) not_executable = std::move(candidate);
    }
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  if (!not_executable.empty())
    return spawn_error(failure::not_executable, "not executable: " + not_executable, EACCES);
  return spawn_error(failure::command_not_found,
                     "command not found: " + command + " (looked in PATH=" + std::string(path) + ")", ENOENT);
}

namespace {

// Finds the command and sets the members of the plan that depend on it: path, arguments, name, containment,
// manifest and digest. REQUIRES: `cwd` and `env` of the plan are set.
Result<void> complete_plan(LaunchPlan& plan, const ProcessSpec& spec) {
  ChildErrorContext& error_context = plan.error_context;
  const std::string search_path(value_of(plan.env, "PATH", kDefaultPath));
  if (!spec.command.contains('/')) error_context.search_path = search_path;
  Result<std::string> path = find_command(spec.command, search_path, plan.cwd);
  if (!path) return path.error();
  plan.path = std::move(*path);
  error_context.command.front() = plan.path;
  plan.args.reserve(spec.args.size() + 1);
  plan.args.push_back(spec.command);
  plan.args.insert(plan.args.end(), spec.args.begin(), spec.args.end());
  plan.name = error_context.redactor.redact(spec.name.empty() ? spec.command : spec.name);
  Result<ContainmentPlan> containment = plan_containment(plan.name, spec.containment, plan.path, plan.cwd);
  if (!containment) return containment.error();
  plan.containment = std::move(*containment);
  plan.manifest = spec.manifest;
  if (plan.manifest.path.empty()) return {};
  plan.containment.add(keeper::with_manifest,
                       plan.manifest.required ? Requirement::required : Requirement::best_effort);
  // Made absolute here, because the child opens the file while its current directory is still that of the
  // keeper.
  plan.manifest.path = make_absolute(plan.manifest.path);
  plan.digest = digest_of(plan);
  return {};
}

}  // namespace

Result<LaunchPlan> plan_launch(const ProcessSpec& spec) {
  const Result<void> valid = validate(spec);
  if (!valid) return valid.error();
  LaunchPlan plan;
  plan.error_context.command.push_back(spec.command);
  plan.error_context.command.insert(plan.error_context.command.end(), spec.args.begin(), spec.args.end());
  std::map<std::string, std::string> secrets;
  std::vector<std::string> redacted = spec.secrets;
  std::optional<Error> missing;  // returned after the loop, because the other secrets must be known to redact
                                 // them in the error
  for (const auto& [name, reference] : spec.secret_env) {
    Result<std::string> value = resolve_secret(name, reference, redacted);
    if (value) {
      secrets.emplace(name, std::move(*value));
    } else if (!missing) {
      missing = value.error();
    }
  }
  plan.error_context.redactor = Redactor(redacted);
  if (missing) return plan.error_context.add_to(*missing, {});
  plan.cwd = make_absolute(spec.cwd);
  plan.env = child_environment(spec, secrets);
  const Result<void> resolved = complete_plan(plan, spec);
  if (!resolved) return plan.error_context.add_to(resolved.error(), {});
  return plan;
}

}  // namespace fairlead::process
