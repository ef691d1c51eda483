#include "process/spawn_errors.hpp"

#include <unistd.h>

#include <cerrno>

namespace fairlead::process {

namespace {

std::string_view shortage(int os_error) {
  switch (os_error) {
    case EMFILE:
    case ENFILE:
    case ETOOMANYREFS: return "out of descriptors: ";
    case EAGAIN: return "out of processes: ";
    case ENOMEM: return "out of memory: ";
    default: return "";
  }
}

Error explain_exec(const std::string& name, const std::string& path, const std::string& cwd, int os_error) {
  const std::string seen = path.starts_with('/') || cwd.empty() ? path : cwd + '/' + path;
  switch (os_error) {
    case ENOENT:
      if (::access(seen.c_str(), F_OK) == 0) {
        return spawn_error("not executable: " + seen + " (the interpreter it names is missing)", os_error);
      }
      [[fallthrough]];
    case ENOTDIR: return spawn_error("command not found: " + seen, os_error);
    case EACCES:
    case EPERM: return spawn_error("not executable: " + seen, os_error);
    case ENOEXEC:
      return spawn_error(
          "not executable: " + seen + " (neither a program for this machine nor a script with #!)", os_error);
    case E2BIG: return spawn_error("the arguments and environment of `" + name + "` are too long", os_error);
    default: return explain_shortage(name, {}, os_error);
  }
}

}  // namespace

Error spawn_error(std::string message, int os_error) {
  return Error(ErrorKind::spawn, std::move(message)).with([&](ErrorDetail& detail) {
    detail.os_error = os_error;
  });
}

Error explain_shortage(const std::string& name, std::string_view what, int os_error) {
  std::string message(shortage(os_error));
  message += "cannot start `" + name + "`";
  if (!what.empty()) (message += ", ") += what;
  return Error::from_errno(ErrorKind::spawn, message, os_error);
}

Error explain_refusal(const std::string& name, const std::string& path, const std::string& cwd,
                      keeper::Step step, int os_error) {
  switch (step) {
    case keeper::Step::exec: return explain_exec(name, path, cwd, os_error);
    case keeper::Step::chdir:
      return Error::from_errno(ErrorKind::spawn, "bad working directory: " + cwd, os_error);
    case keeper::Step::request:
      return explain_shortage(name, "its keeper is of another version (FAIRLEAD_KEEPER?)", os_error);
    default: return explain_shortage(name, {}, os_error);
  }
}

}  // namespace fairlead::process
