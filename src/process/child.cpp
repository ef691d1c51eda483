#include "fairlead/process/child.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <utility>

#include "fairlead/process/failure.hpp"
#include "process/above_stdio.hpp"
#include "process/child_process.hpp"
#include "process/keeper/protocol.hpp"
#include "process/spawn_errors.hpp"

namespace fairlead {

std::string ExitStatus::to_string() const {
  std::string text = "exited with status " + std::to_string(code.value_or(0));
  if (signal) {
    const char* abbreviation = ::sigabbrev_np(*signal);
    text = "was killed by signal " + std::to_string(*signal);
    if (abbreviation) ((text += " (SIG") += abbreviation) += ")";
  }
  return out_of_memory ? text + ", memory limit of its cgroup exceeded," : text;
}

namespace process {

namespace {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

// Both ends are close-on-exec. Another child that inherited one of them would prevent EOF on the pipe.
Result<Pipe> make_pipe(const std::string& name) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) return start_error_from_errno(name, "cannot create a pipe", errno);
  Pipe pipe;
  pipe.read = move_above_stdio(UniqueFd(ends[0]));
  pipe.write = move_above_stdio(UniqueFd(ends[1]));
  if (!pipe.read || !pipe.write) return start_error_from_errno(name, "cannot create a pipe", errno);
  return pipe;
}

// Returns a duplicate of the stderr of this process, or /dev/null if its stderr is closed.
Result<UniqueFd> duplicate_stderr(const std::string& name) {
  UniqueFd copy(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!copy && errno == EBADF) copy = move_above_stdio(UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC)));
  if (!copy) return start_error_from_errno(name, "cannot duplicate stderr", errno);
  return copy;
}

struct Stdio {
  UniqueFd own_ends[3];
  UniqueFd child_ends[3];
};

Result<Stdio> make_stdio(const std::string& name, StderrMode mode) {
  Stdio stdio;
  Result<Pipe> in = make_pipe(name);
  if (!in) return in.error();
  Result<Pipe> out = make_pipe(name);
  if (!out) return out.error();
  stdio.own_ends[0] = std::move(in->write);
  stdio.child_ends[0] = std::move(in->read);
  stdio.own_ends[1] = std::move(out->read);
  stdio.child_ends[1] = std::move(out->write);
  if (mode == StderrMode::inherit) {
    Result<UniqueFd> inherited = duplicate_stderr(name);
    if (!inherited) return inherited.error();
    stdio.child_ends[2] = std::move(*inherited);
    return stdio;
  }
  Result<Pipe> err = make_pipe(name);
  if (!err) return err.error();
  stdio.own_ends[2] = std::move(err->read);
  stdio.child_ends[2] = std::move(err->write);
  return stdio;
}

// Returns the number of keepers among the ancestors of this process, which is the number of segments in its
// cookie: each keeper has added one.
std::size_t nesting_depth() {
  const char* cookie = ::getenv(keeper::kCookieName);
  if (!cookie || !*cookie) return 0;
  return static_cast<std::size_t>(std::ranges::count(std::string_view(cookie), '/')) + 1;
}

// A gateway whose servers include the same gateway would start processes without limit.
Result<void> check_nesting(const std::string& name, std::size_t max_nesting) {
  const std::size_t depth = nesting_depth();
  if (depth < max_nesting) return {};
  return spawn_error(failure::nested_too_deep,
                     "cannot start `" + name + "`: this process runs below " + std::to_string(depth) +
                         " nested gateways (max_nesting " + std::to_string(max_nesting) + ")",
                     ELOOP);
}

// A child that has not been started yet, and the plan for starting it.
struct PreparedChild {
  std::shared_ptr<ChildProcess> child;
  LaunchPlan plan;
};

Result<PreparedChild> prepare_child(Loop& loop, ProcessSpec spec, const Limits& limits, Log log) {
  Result<LaunchPlan> plan = plan_launch(spec);
  if (!plan) return plan.error();
  if (spec.name.empty()) spec.name = spec.command;
  spec.name = plan->error_context.redactor.redact(spec.name);
  const Result<void> nested = check_nesting(spec.name, limits.max_nesting);
  if (!nested) return plan->error_context.add_to(nested.error(), {});
  Result<Stdio> stdio = make_stdio(spec.name, spec.stderr_mode);
  if (!stdio) return plan->error_context.add_to(stdio.error(), {});
  for (int i = 0; i < 3; ++i) plan->stdio[i] = std::move(stdio->child_ends[i]);
  auto child =
      std::make_shared<ChildProcess>(loop, std::move(spec.name), spec.stderr_mode, limits, std::move(log));
  child->set_on_stderr_line(std::move(spec.on_stderr_line));
  const Result<void> adopted = child->adopt_pipes(
      std::move(stdio->own_ends[0]), std::move(stdio->own_ends[1]), std::move(stdio->own_ends[2]));
  if (!adopted) return plan->error_context.add_to(adopted.error(), failure::spawn_failed);
  return PreparedChild{std::move(child), std::move(*plan)};
}

}  // namespace
}  // namespace process

Task<Result<std::shared_ptr<Child>>> Child::spawn(Loop& loop, ProcessSpec spec, Limits limits, Log log) {
  Result<process::PreparedChild> prepared =
      process::prepare_child(loop, std::move(spec), limits, std::move(log));
  if (!prepared) co_return prepared.error();
  const std::shared_ptr<process::ChildProcess> child = std::move(prepared->child);
  const Result<void> requested = child->launch(std::move(prepared->plan));
  if (!requested) co_return requested.error();
  const Result<void> started = co_await process::StartWait(*child);
  if (!started) co_return started.error();
  co_return std::shared_ptr<Child>(child);
}

}  // namespace fairlead
