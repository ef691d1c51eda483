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
  return out_of_memory ? text + ", out of the memory its cgroup has," : text;
}

namespace process {

namespace {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

// Close-on-exec from birth: a sibling that inherited one of the ends would keep the pipe from ever ending.
Result<Pipe> make_pipe(const std::string& name) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) return explain_shortage(name, "no pipe", errno);
  Pipe pipe;
  pipe.read = above_stdio(UniqueFd(ends[0]));
  pipe.write = above_stdio(UniqueFd(ends[1]));
  if (!pipe.read || !pipe.write) return explain_shortage(name, "no pipe", errno);
  return pipe;
}

// A descriptor of our own for what our stderr is; a program without one has children without one.
Result<UniqueFd> our_stderr(const std::string& name) {
  UniqueFd copy(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!copy && errno == EBADF) copy = above_stdio(UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC)));
  if (!copy) return explain_shortage(name, "no stderr", errno);
  return copy;
}

struct Stdio {
  UniqueFd ours[3];
  UniqueFd theirs[3];
};

Result<Stdio> make_stdio(const std::string& name, StderrMode mode) {
  Stdio stdio;
  Result<Pipe> in = make_pipe(name);
  if (!in) return in.error();
  Result<Pipe> out = make_pipe(name);
  if (!out) return out.error();
  stdio.ours[0] = std::move(in->write);
  stdio.theirs[0] = std::move(in->read);
  stdio.ours[1] = std::move(out->read);
  stdio.theirs[1] = std::move(out->write);
  if (mode == StderrMode::inherit) {
    Result<UniqueFd> inherited = our_stderr(name);
    if (!inherited) return inherited.error();
    stdio.theirs[2] = std::move(*inherited);
    return stdio;
  }
  Result<Pipe> err = make_pipe(name);
  if (!err) return err.error();
  stdio.ours[2] = std::move(err->read);
  stdio.theirs[2] = std::move(err->write);
  return stdio;
}

// How many keepers are above this process. Each has added a segment to the cookie.
std::size_t nesting_depth() {
  const char* cookie = ::getenv(keeper::kCookieName);
  if (!cookie || !*cookie) return 0;
  return static_cast<std::size_t>(std::ranges::count(std::string_view(cookie), '/')) + 1;
}

// A gateway among whose servers is the same gateway would start processes without end.
Result<void> check_nesting(const std::string& name, std::size_t max_nesting) {
  const std::size_t depth = nesting_depth();
  if (depth < max_nesting) return {};
  return spawn_error(failure::nested_too_deep,
                     "cannot start `" + name + "`: this process runs below " + std::to_string(depth) +
                         " nested gateways (max_nesting " + std::to_string(max_nesting) + ")",
                     ELOOP);
}

// The order for the keeper, and the child it will be told about; nothing is started yet.
struct Prepared {
  std::shared_ptr<ChildProcess> child;
  SpawnOrder order;
};

Result<Prepared> prepare(Loop& loop, ProcessSpec spec, const Limits& limits, Log log) {
  Result<SpawnOrder> order = plan_launch(spec);
  if (!order) return order.error();
  if (spec.name.empty()) spec.name = spec.command;
  spec.name = order->last_words.redactor.redact(spec.name);
  const Result<void> nested = check_nesting(spec.name, limits.max_nesting);
  if (!nested) return order->last_words.on(nested.error(), {});
  Result<Stdio> stdio = make_stdio(spec.name, spec.stderr_mode);
  if (!stdio) return order->last_words.on(stdio.error(), {});
  for (int i = 0; i < 3; ++i) order->stdio[i] = std::move(stdio->theirs[i]);
  auto child =
      std::make_shared<ChildProcess>(loop, std::move(spec.name), spec.stderr_mode, limits, std::move(log));
  const Result<void> attached =
      child->attach(std::move(stdio->ours[0]), std::move(stdio->ours[1]), std::move(stdio->ours[2]));
  if (!attached) return order->last_words.on(attached.error(), failure::spawn_failed);
  return Prepared{std::move(child), std::move(*order)};
}

}  // namespace
}  // namespace process

Task<Result<std::shared_ptr<Child>>> Child::spawn(Loop& loop, ProcessSpec spec, Limits limits, Log log) {
  Result<process::Prepared> prepared = process::prepare(loop, std::move(spec), limits, std::move(log));
  if (!prepared) co_return prepared.error();
  const std::shared_ptr<process::ChildProcess> child = std::move(prepared->child);
  const Result<void> asked = child->launch(std::move(prepared->order));
  if (!asked) co_return asked.error();
  const Result<void> started = co_await process::StartWait(*child);
  if (!started) co_return started.error();
  co_return std::shared_ptr<Child>(child);
}

}  // namespace fairlead
