#include "process/spawn_errors.hpp"

#include <string.h>
#include <unistd.h>

#include <cerrno>

#include "fairlead/process/failure.hpp"

namespace fairlead::process {

namespace {

std::string error_text(int os_error) {
  char buffer[128];
  return strerror_r(os_error, buffer, sizeof buffer);
}

struct ExhaustedResource {
  std::string_view code = failure::spawn_failed;
  std::string_view prefix;  // of the message
};

ExhaustedResource exhausted_resource(int os_error) {
  switch (os_error) {
    case EMFILE:
    case ENFILE:
    case ETOOMANYREFS: return {failure::out_of_descriptors, "out of descriptors: "};
    case EAGAIN: return {failure::out_of_processes, "out of processes: "};
    case ENOMEM: return {failure::out_of_memory, "out of memory: "};
    default: return {};
  }
}

Error exec_error(const std::string& name, const std::string& path, const std::string& cwd, int os_error) {
  const std::string full_path = path.starts_with('/') || cwd.empty() ? path : cwd + '/' + path;
  const auto not_executable = [&](std::string_view why) {
    return spawn_error(failure::not_executable, "not executable: " + full_path + std::string(why), os_error);
  };
  switch (os_error) {
    case ENOENT:
      if (::access(full_path.c_str(), F_OK) == 0)
        return not_executable(" (the interpreter it names is missing)");
      [[fallthrough]];
    case ENOTDIR: return spawn_error(failure::command_not_found, "command not found: " + full_path, os_error);
    case EACCES:
    case EPERM: return not_executable("");
    case ENOEXEC: return not_executable(" (neither a program for this machine nor a script with #!)");
    case E2BIG:
      return spawn_error(failure::arguments_too_long,
                         "the arguments and environment of `" + name + "` are too long", os_error);
    default: return start_error_from_errno(name, {}, os_error);
  }
}

ContainmentMeasure measure_of(keeper::SpawnStep step) {
  switch (step) {
    case keeper::SpawnStep::cgroup: return ContainmentMeasure::cgroup;
    case keeper::SpawnStep::memory_max: return ContainmentMeasure::memory_max;
    case keeper::SpawnStep::pids_max: return ContainmentMeasure::pids_max;
    case keeper::SpawnStep::limits: return ContainmentMeasure::limits;
    case keeper::SpawnStep::no_new_privs: return ContainmentMeasure::no_new_privs;
    default: return ContainmentMeasure::landlock;
  }
}

}  // namespace

Error spawn_error(std::string_view code, std::string message, int os_error) {
  return Error(ErrorKind::spawn, std::move(message)).with([&](ErrorDetail& detail) {
    detail.failure_code = code;
    detail.remedy = remedy_for(code);
    detail.os_error = os_error;
  });
}

Error start_error_from_errno(const std::string& name, std::string_view detail, int os_error) {
  const ExhaustedResource exhausted = exhausted_resource(os_error);
  std::string message(exhausted.prefix);
  message += "cannot start `" + name + "`";
  if (!detail.empty()) (message += ", ") += detail;
  return spawn_error(exhausted.code, message + ": " + error_text(os_error), os_error);
}

Error spawn_failure_error(const std::string& name, const std::string& path, const std::string& cwd,
                          const std::string& manifest, const keeper::SpawnOutcome& outcome) {
  const int os_error = outcome.error;
  switch (outcome.step) {
    case keeper::SpawnStep::exec: return exec_error(name, path, cwd, os_error);
    case keeper::SpawnStep::chdir:
      return spawn_error(failure::bad_cwd, "bad working directory: " + cwd + ": " + error_text(os_error),
                         os_error);
    case keeper::SpawnStep::request:
      return spawn_error(
          failure::keeper_failed,
          "cannot start `" + name + "`: the keeper has another version (check FAIRLEAD_KEEPER)", os_error);
    case keeper::SpawnStep::manifest:
      return spawn_error(
          failure::manifest_unavailable,
          "cannot record `" + name + "` in the manifest: " + explain_manifest_error(manifest, os_error),
          os_error);
    case keeper::SpawnStep::none:
    case keeper::SpawnStep::descriptors:
    case keeper::SpawnStep::process: return start_error_from_errno(name, {}, os_error);
    default: {
      const ContainmentMeasure measure = measure_of(outcome.step);
      return measure_unavailable_error(name, measure, explain_measure_error(measure, os_error), os_error);
    }
  }
}

std::string explain_manifest_error(const std::string& path, int os_error) {
  switch (os_error) {
    case EBADMSG: return path + " is not a manifest: its first line is not {\"fairlead_manifest\":1}";
    case EPERM: return path + " belongs to another user";
    case ELOOP: return path + " is a symbolic link";
    case EWOULDBLOCK: return path + " is locked by another process";
    case EBUSY: return path + " is continuously replaced by another process";
    default: return path + ": " + error_text(os_error);
  }
}

std::string explain_measure_error(ContainmentMeasure measure, int os_error) {
  switch (measure) {
    case ContainmentMeasure::landlock:
      if (os_error == ENOSYS) return "this kernel has no Landlock";
      if (os_error == EOPNOTSUPP) return "Landlock is disabled in this kernel";
      if (os_error == ENOENT) return "a path of its rules does not exist; the others are in force";
      break;
    case ContainmentMeasure::limits:
      if (os_error == EPERM) return "a limit is above the hard limit of this process";
      break;
    case ContainmentMeasure::cgroup:
      if (os_error == EOPNOTSUPP) return "this kernel cannot kill a cgroup (before 5.14)";
      break;
    case ContainmentMeasure::memory_max:
    case ContainmentMeasure::pids_max:
      if (os_error == ENOENT) return "no cgroup with that controller is available";
      break;
    default: break;
  }
  return error_text(os_error);
}

Error measure_unavailable_error(const std::string& name, ContainmentMeasure measure,
                                const std::string& reason, int os_error) {
  return spawn_error(
      failure::belt_unavailable,
      std::string(to_string(measure)) + " is required for `" + name + "` but unavailable: " + reason,
      os_error);
}

}  // namespace fairlead::process
