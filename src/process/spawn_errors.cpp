#include "process/spawn_errors.hpp"

#include <string.h>
#include <unistd.h>

#include <cerrno>

#include "fairlead/process/failure.hpp"

namespace fairlead::process {

namespace {

std::string in_words(int os_error) {
  char buffer[128];
  return strerror_r(os_error, buffer, sizeof buffer);
}

struct Shortage {
  std::string_view code = failure::spawn_failed;
  std::string_view words;
};

Shortage shortage(int os_error) {
  switch (os_error) {
    case EMFILE:
    case ENFILE:
    case ETOOMANYREFS: return {failure::out_of_descriptors, "out of descriptors: "};
    case EAGAIN: return {failure::out_of_processes, "out of processes: "};
    case ENOMEM: return {failure::out_of_memory, "out of memory: "};
    default: return {};
  }
}

Error explain_exec(const std::string& name, const std::string& path, const std::string& cwd, int os_error) {
  const std::string seen = path.starts_with('/') || cwd.empty() ? path : cwd + '/' + path;
  const auto not_executable = [&](std::string_view why) {
    return spawn_error(failure::not_executable, "not executable: " + seen + std::string(why), os_error);
  };
  switch (os_error) {
    case ENOENT:
      if (::access(seen.c_str(), F_OK) == 0) return not_executable(" (the interpreter it names is missing)");
      [[fallthrough]];
    case ENOTDIR: return spawn_error(failure::command_not_found, "command not found: " + seen, os_error);
    case EACCES:
    case EPERM: return not_executable("");
    case ENOEXEC: return not_executable(" (neither a program for this machine nor a script with #!)");
    case E2BIG:
      return spawn_error(failure::arguments_too_long,
                         "the arguments and environment of `" + name + "` are too long", os_error);
    default: return explain_shortage(name, {}, os_error);
  }
}

Belt belt_of(keeper::Step step) {
  switch (step) {
    case keeper::Step::cgroup: return Belt::cgroup;
    case keeper::Step::memory_max: return Belt::memory_max;
    case keeper::Step::pids_max: return Belt::pids_max;
    case keeper::Step::limits: return Belt::limits;
    case keeper::Step::no_new_privs: return Belt::no_new_privs;
    default: return Belt::landlock;
  }
}

}  // namespace

Error spawn_error(std::string_view code, std::string message, int os_error) {
  return Error(ErrorKind::spawn, std::move(message)).with([&](ErrorDetail& detail) {
    detail.code = code;
    detail.remedy = remedy_for(code);
    detail.os_error = os_error;
  });
}

Error explain_shortage(const std::string& name, std::string_view what, int os_error) {
  const Shortage known = shortage(os_error);
  std::string message(known.words);
  message += "cannot start `" + name + "`";
  if (!what.empty()) (message += ", ") += what;
  return spawn_error(known.code, message + ": " + in_words(os_error), os_error);
}

Error explain_refusal(const std::string& name, const std::string& path, const std::string& cwd,
                      const std::string& manifest, const keeper::Outcome& outcome) {
  const int os_error = outcome.error;
  switch (outcome.step) {
    case keeper::Step::exec: return explain_exec(name, path, cwd, os_error);
    case keeper::Step::chdir:
      return spawn_error(failure::bad_cwd, "bad working directory: " + cwd + ": " + in_words(os_error),
                         os_error);
    case keeper::Step::request:
      return spawn_error(failure::keeper_failed,
                         "cannot start `" + name + "`, its keeper is of another version (FAIRLEAD_KEEPER?)",
                         os_error);
    case keeper::Step::manifest:
      return spawn_error(
          failure::manifest_unavailable,
          "cannot enter `" + name + "` in its manifest: " + explain_manifest(manifest, os_error), os_error);
    case keeper::Step::none:
    case keeper::Step::descriptors:
    case keeper::Step::process: return explain_shortage(name, {}, os_error);
    default: {
      const Belt belt = belt_of(outcome.step);
      return belt_error(name, belt, explain_belt(belt, os_error), os_error);
    }
  }
}

std::string explain_manifest(const std::string& path, int os_error) {
  switch (os_error) {
    case EBADMSG: return path + " is not a manifest: its first line is not {\"fairlead_manifest\":1}";
    case EPERM: return path + " belongs to another user";
    case ELOOP: return path + " is a symbolic link";
    case EWOULDBLOCK: return path + " is locked by another process";
    case EBUSY: return path + " is replaced by another process all the time";
    default: return path + ": " + in_words(os_error);
  }
}

std::string explain_belt(Belt belt, int os_error) {
  switch (belt) {
    case Belt::landlock:
      if (os_error == ENOSYS) return "this kernel has no Landlock";
      if (os_error == EOPNOTSUPP) return "Landlock is switched off in this kernel";
      if (os_error == ENOENT) return "a path of its rules does not exist; the others are in force";
      break;
    case Belt::limits:
      if (os_error == EPERM) return "a limit is above the hard limit this program has itself";
      break;
    case Belt::cgroup:
      if (os_error == EOPNOTSUPP) return "this kernel cannot kill a cgroup (before 5.14)";
      break;
    case Belt::memory_max:
    case Belt::pids_max:
      if (os_error == ENOENT) return "there is no cgroup with that controller";
      break;
    default: break;
  }
  return in_words(os_error);
}

Error belt_error(const std::string& name, Belt belt, const std::string& why_not, int os_error) {
  return spawn_error(
      failure::belt_unavailable,
      std::string(to_string(belt)) + " is required for `" + name + "` and cannot be had: " + why_not,
      os_error);
}

}  // namespace fairlead::process
