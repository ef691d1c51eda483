// Child: a program started, owned, stopped and reaped by us. It and everything it starts end when it is
// stopped, when its Child is destroyed, and when this process dies, however it dies: children are run
// by a keeper process that outlives us just long enough (docs/processes.md).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
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
  // Copied to our own stderr byte for byte. While our stderr accepts nothing, the child's is not read and the
  // child blocks when its pipe is full. The last lines are kept for errors.
  relay,
  // Logged line by line with the child's name, at most limits.stderr_log_lines per second; the log says how
  // many were dropped. Always read, so the child never blocks. The last lines are kept.
  log,
  discard,  // not shown; last lines kept
  inherit,  // the child gets our own descriptor; nothing is kept
};

struct ProcessSpec {
  std::string command;            // a path, or a name looked up in the child's own PATH
  std::vector<std::string> args;  // without argv[0]
  // Added to the inherited environment, replacing variables of the same name. A child inherits no variable
  // whose name begins with FAIRLEAD_: those configure this process. `env` may set them for the child.
  std::map<std::string, std::string> env;
  // If set, only these variables are inherited, before `env` is applied.
  std::optional<std::vector<std::string>> inherit_only;
  // Variables whose values are not to be seen: `${NAME}` stands for a variable of ours, `${file:/path}` for a
  // file's content without its last line break, `$$` for a dollar; a value that begins with `file:` is a
  // file's content as a whole. Laid over `env`. What they resolve to appears in no log, error, description or
  // manifest.
  std::map<std::string, std::string> secret_env;
  // Values that are redacted likewise, wherever they are used: in `args`, in `env`, in a file the child
  // reads.
  std::vector<std::string> secrets;
  // Variables that are not inherited, unless `inherit_only` names them.
  std::vector<std::string> withheld_env;
  std::string cwd;  // empty: ours
  StderrMode stderr_mode = StderrMode::relay;
  std::string name;  // for logs and errors; the command when empty
  Containment containment;
  ManifestOptions manifest;
};

struct ExitStatus {
  std::optional<int> code;     // exit(n)
  std::optional<int> signal;   // killed by
  bool out_of_memory = false;  // the memory limit of its cgroup killed it, or something it had started
  // "exited with status 3", "was killed by signal 9 (SIGKILL)"
  std::string to_string() const;
};

class Child : public std::enable_shared_from_this<Child> {
 public:
  // Resolves, starts and returns the running child; errors are of kind `spawn` and say which (detail().code):
  // command not found, not executable, bad working directory, out of processes or descriptors, a belt that is
  // required and not there, … Runs on `loop`.
  static Task<Result<std::shared_ptr<Child>>> spawn(Loop& loop, ProcessSpec spec, Limits limits = {},
                                                    Log log = {});

  // A child that still runs is killed, with its whole group.
  virtual ~Child() = default;

  // Our ends of its pipes, to be taken once each.
  virtual UniqueFd take_stdin() = 0;
  virtual UniqueFd take_stdout() = 0;

  virtual pid_t pid() const noexcept = 0;
  virtual const std::string& name() const noexcept = 0;
  virtual bool is_running() const noexcept = 0;
  virtual std::optional<ExitStatus> exit_status() const noexcept = 0;  // once reaped
  virtual std::vector<std::string> last_stderr() const = 0;
  // What holds it, and what was wanted and is not there.
  virtual const std::vector<BeltState>& belts() const noexcept = 0;

  // Calls back on the loop when the child has ended, been reaped and its stderr read to the end (or for a
  // short while, should a process that escaped hold it open); at once (posted) if that was already so.
  virtual void when_exited(std::function<void(const ExitStatus&)> callback) = 0;
  // The same for coroutines.
  virtual Task<ExitStatus> exited() = 0;

  // The stop ladder. The caller has closed stdin; wait `grace` for the child to end by itself, SIGTERM to
  // its group, wait `grace`, SIGKILL to its group, reap. Safe to call twice; ends when the child is gone.
  virtual Task<ExitStatus> stop(std::chrono::milliseconds grace) = 0;
  // Straight to SIGKILL.
  virtual void kill() = 0;

  // Kind process_exited, with how it ended and its last words. REQUIRES: exit_status().
  virtual Error exit_error() const = 0;
  // `error` with what is known of this child: its command line, the PATH it was looked for in, its last
  // lines, and the code (one of failure_codes()) with its remedy.
  virtual Error with_last_words(Error error, std::string_view code) const = 0;
};

}  // namespace fairlead
