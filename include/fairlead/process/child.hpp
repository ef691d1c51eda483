// Child: a child process that the library starts, owns, stops and reaps. The child and all its descendants
// end when it is stopped, when its Child object is destroyed, and when this process dies for any reason: the
// parent of every child is a keeper process, which kills them after this process has died
// (docs/processes.md).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/limits.hpp"
#include "fairlead/base/log.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/loop/descriptor.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"
#include "fairlead/process/containment.hpp"
#include "fairlead/process/manifest.hpp"

namespace fairlead {

enum class StderrMode : std::uint8_t {
  // Copied to the stderr of this process byte for byte. While that stderr is not writable, the child's pipe
  // is not read, and the child blocks when the pipe is full. The last lines are kept for errors.
  relay,
  // Logged line by line with the child's name, at most limits.stderr_log_lines per second; a log line reports
  // how many were dropped. The pipe is always read, so the child never blocks. The last lines are kept.
  log,
  discard,  // read and not shown; the last lines are kept
  inherit,  // the child inherits the stderr descriptor of this process; no lines are kept
};

struct ProcessSpec {
  std::string command;            // a path, or a name looked up in the child's own PATH
  std::vector<std::string> args;  // without argv[0]
  // Variables that are added to the inherited environment and replace inherited variables of the same name. A
  // child inherits no variable whose name begins with FAIRLEAD_, because these variables configure this
  // process. `env` may set them for the child.
  std::map<std::string, std::string> env;
  // If set, only these variables are inherited, before `env` is applied.
  std::optional<std::vector<std::string>> inherit_only;
  // Variables with secret values. `${NAME}` is replaced by a variable of this process, `${file:/path}` by the
  // content of a file without its last line break, and `$$` by a dollar sign; a value that begins with
  // `file:` is replaced as a whole by the content of that file. They replace variables of the same name in
  // `env`. The resolved values appear in no log, error, description or manifest.
  std::map<std::string, std::string> secret_env;
  // Further secret values, redacted in the same way. They may occur in `args`, in `env`, or in a file that
  // the child reads.
  std::vector<std::string> secrets;
  // Variables of this process that the child does not inherit unless `inherit_only` lists them.
  std::vector<std::string> withheld_env;
  std::string cwd;  // empty: that of this process
  StderrMode stderr_mode = StderrMode::relay;
  std::string name;  // for logs and errors; if empty, the command is used
  // Called on the loop thread with the lines that the child writes to stderr, with secrets redacted, at most
  // limits.stderr_log_lines per second. Not called with StderrMode::inherit.
  std::function<void(std::string_view line)> on_stderr_line;
  Containment containment;
  ManifestOptions manifest;
};

struct ExitStatus {
  std::optional<int> code;     // the argument of exit()
  std::optional<int> signal;   // the signal that killed the child
  bool out_of_memory = false;  // the memory limit of its cgroup killed the child or a descendant
  // Returns for example "exited with status 3" or "was killed by signal 9 (SIGKILL)".
  std::string to_string() const;
};

class Child : public std::enable_shared_from_this<Child> {
 public:
  // Resolves the command, starts the program and returns the running child. Runs on `loop`. Fails with kind
  // `spawn`; detail().failure_code names the cause: command not found, not executable, bad working directory,
  // out of processes or descriptors, a required containment measure that is unavailable, and others.
  static Task<Result<std::shared_ptr<Child>>> spawn(Loop& loop, ProcessSpec spec, Limits limits = {},
                                                    Log log = {});

  // Kills the child with its whole process group if it still runs.
  virtual ~Child() = default;

  // Return this process's ends of the child's pipes and transfer ownership to the caller. Call each once.
  virtual UniqueFd release_stdin() = 0;
  virtual UniqueFd release_stdout() = 0;

  virtual pid_t pid() const noexcept = 0;
  virtual const std::string& name() const noexcept = 0;
  virtual bool is_running() const noexcept = 0;
  virtual std::optional<ExitStatus> exit_status() const noexcept = 0;  // nullopt until the child is reaped
  // Returns the first and the last lines of stderr, oldest first, with secrets redacted: at most
  // limits.stderr_keep_lines, and a line that says how many are omitted between them. Empty with
  // StderrMode::inherit.
  virtual std::vector<std::string> last_stderr() const = 0;
  // Retains a line that the child wrote to stdout and that is not a message, for errors about the child.
  virtual void record_stdout_line(std::string_view line) = 0;
  // Returns the containment measures that were requested for the child, in force or not.
  virtual const std::vector<ContainmentStatus>& containment_status() const noexcept = 0;

  // Calls `callback` on the loop thread when the child has been reaped and its stderr has been read to the
  // end. If a process that escaped from the child's process group keeps stderr open, it is read for a short
  // while only. If all this has already happened, the callback is posted to the loop.
  virtual void when_exited(std::function<void(const ExitStatus&)> callback) = 0;
  // Waits for the same event as when_exited(), and returns the exit status.
  virtual Task<ExitStatus> wait_exited() = 0;

  // Stops the child in steps: waits `grace` for it to end by itself (the caller has closed its stdin), sends
  // SIGTERM to its process group, waits `grace`, sends SIGKILL to the group, and reaps it. Returns when the
  // child has ended. May be called more than once.
  virtual Task<ExitStatus> stop(std::chrono::milliseconds grace) = 0;
  // Sends SIGKILL to the child's process group.
  virtual void kill() = 0;

  // Returns an error of kind process_exited with the exit status and the lines of stdout and stderr.
  // REQUIRES: exit_status() has a value.
  virtual Error exit_error() const = 0;
  // Returns `error` with the context of this child: its command line, the PATH in which the command was
  // looked up, the lines of its stdout and stderr, and `code` (one of failure_codes()) with its remedy.
  virtual Error with_error_context(Error error, std::string_view code) const = 0;
};

}  // namespace fairlead
