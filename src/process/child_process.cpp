#include "process/child_process.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <utility>

#include "fairlead/process/failure.hpp"
#include "process/keeper_start.hpp"
#include "process/spawn_errors.hpp"

namespace fairlead::process {

namespace {

// How long stderr is read after the child's end. A process that escaped from the child's process group may
// keep it open forever.
constexpr std::chrono::milliseconds kStderrLinger{200};
// The interval to which Limits::stderr_log_lines applies.
constexpr std::chrono::milliseconds kLogInterval{1'000};

std::string format_elapsed(Clock::duration time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  if (ms < 1000) return std::to_string(ms) + " ms";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ms) / 1000);
  return text;
}

}  // namespace

ChildProcess::ChildProcess(Loop& loop, std::string name, StderrMode mode, const Limits& limits, Log log)
    : loop_(&loop),
      keeper_(KeeperClient::for_loop(loop)),
      name_(std::move(name)),
      stderr_mode_(mode),
      log_(std::move(log)),
      tail_(limits.stderr_keep_lines, limits.stderr_line_bytes),
      stdout_tail_(limits.stderr_keep_lines, limits.stderr_line_bytes),
      log_limit_(limits.stderr_log_lines, kLogInterval),
      max_relay_stall_(limits.write_stall) {
  if (mode == StderrMode::relay) relay_.emplace(loop);
  keeper_->set_keeper_timeout(limits.keeper_timeout);
  keeper_->add_shutdown_observer(*this);
}

ChildProcess::~ChildProcess() {
  keeper_->remove_shutdown_observer(*this);
  if (token_ != 0) keeper_->kill_and_unregister(token_);
}

Result<void> ChildProcess::adopt_pipes(UniqueFd in, UniqueFd out, UniqueFd err) {
  stdin_ = std::move(in);
  stdout_ = std::move(out);
  if (!err) return {};
  Result<Descriptor> readable = Descriptor::adopt(*loop_, std::move(err));
  if (!readable) return Error(ErrorKind::spawn, readable.error().message());
  stderr_ = std::move(*readable);
  return {};
}

Result<void> ChildProcess::launch(LaunchPlan plan) {
  program_path_ = plan.path;
  cwd_ = plan.cwd;
  error_context_ = std::move(plan.error_context);
  // Relayed text with secrets is passed on line by line, because secrets can be found only in complete lines.
  if (stderr_mode_ == StderrMode::log || on_stderr_line_ ||
      (stderr_mode_ == StderrMode::relay && !error_context_.redactor.empty()))
    tail_.set_on_line([this](std::string_view line) { handle_stderr_line(line); });
  const Result<void> recorded = prepare_manifest(plan);
  if (!recorded) return error_context_.add_to(recorded.error(), {});
  const Result<void> found = prepare_cgroup(plan);
  if (!found) return error_context_.add_to(found.error(), {});
  containment_plan_ = plan.containment;
  manifest_path_ = plan.manifest.path;
  const Result<KeeperClient::Token> token = keeper_->spawn(std::move(plan), *this);
  if (!token) return error_context_.add_to(token.error(), {});
  token_ = *token;
  return {};
}

Result<void> ChildProcess::skip_measure(LaunchPlan& plan, ContainmentMeasure measure,
                                        const std::string& reason) {
  const keeper::SpawnFlag flag = flag_of(measure);
  if (!plan.containment.includes(flag)) return {};
  if (plan.containment.requires_(flag)) return measure_unavailable_error(name_, measure, reason, ENOTSUP);
  plan.containment.remove(flag);
  containment_status_.push_back({measure, false, reason});
  return {};
}

Result<void> ChildProcess::prepare_manifest(LaunchPlan& plan) {
  if (!plan.containment.includes(keeper::with_manifest)) return {};
  const Result<void> entered = keeper_->write_keeper_entry(plan.manifest);
  if (entered || plan.manifest.required) return entered;
  return skip_measure(plan, ContainmentMeasure::manifest, entered.error().message());
}

Result<void> ChildProcess::prepare_cgroup(LaunchPlan& plan) {
  if (!plan.containment.includes(keeper::with_cgroup)) return {};
  const CgroupParent& parent = keeper_->cgroup_parent(plan.containment.cgroup_parent);
  plan.cgroup_parent = parent.directory;
  const auto require_controller = [&](ContainmentMeasure measure,
                                      std::string_view controller) -> Result<void> {
    if (!plan.containment.includes(flag_of(measure))) return {};
    const Result<void> enabled = enable_controller(parent.directory, controller);
    if (enabled) return {};
    return skip_measure(plan, measure, enabled.error().message());
  };
  if (!parent.directory.empty()) {
    const Result<void> memory = require_controller(ContainmentMeasure::memory_max, "memory");
    if (!memory) return memory;
    return require_controller(ContainmentMeasure::pids_max, "pids");
  }
  for (const ContainmentMeasure measure :
       {ContainmentMeasure::cgroup, ContainmentMeasure::memory_max, ContainmentMeasure::pids_max}) {
    const Result<void> without = skip_measure(plan, measure, parent.reason);
    if (!without) return without;
  }
  return {};
}

void ChildProcess::on_started(pid_t pid, const keeper::SpawnOutcome& outcome) {
  pid_ = pid;
  started_at_ = Clock::now();
  std::vector<ContainmentStatus> statuses = containment_status_of(containment_plan_, outcome);
  statuses.insert(statuses.end(), containment_status_.begin(), containment_status_.end());
  containment_status_ = std::move(statuses);
  for (const ContainmentStatus& status : containment_status_) {
    if (status.in_force) continue;
    if (status.measure != ContainmentMeasure::cgroup) {
      log_.warning(
          "child runs without a containment measure",
          {{"child", name_}, {"belt", std::string(to_string(status.measure))}, {"why", status.reason}});
    } else if (keeper_->should_log_missing_cgroup()) {
      // Logged once, because cgroups are unavailable on many systems, and the other measures contain a child
      // too.
      log_.info("children run without a cgroup", {{"why", status.reason}});
    }
  }
  wait_for_stderr_data();
  if (start_waiter_) std::exchange(start_waiter_, nullptr).resume();
}

void ChildProcess::on_refused(const keeper::SpawnOutcome& outcome) {
  record_start_error(spawn_failure_error(name_, program_path_, cwd_, manifest_path_, outcome));
}

void ChildProcess::record_start_error(Error error) {
  token_ = 0;
  start_error_ = error_context_.add_to(std::move(error), {});
  if (start_waiter_) std::exchange(start_waiter_, nullptr).resume();
}

// When a keeper dies, the kernel kills its children, so SIGKILL is recorded as the exit status.
void ChildProcess::on_keeper_died() {
  if (pid_ == 0) {
    return record_start_error(keeper_death_error(name_, keeper_->has_answered()));
  }
  keeper_died_ = true;
  ExitStatus status;
  status.signal = SIGKILL;
  handle_end(status);
}

// This object may outlive the loop and must not use the loop again. No waiter is called, because there is no
// loop to call it on.
void ChildProcess::on_loop_shutdown() {
  loop_ = nullptr;
  token_ = 0;
  start_waiter_ = nullptr;
  stderr_.reset();
  relay_.reset();
  drop_report_timer_.reset();
  stderr_timer_.reset();
  waiters_.clear();
  if (!exit_status_) {
    exit_status_.emplace();
    exit_status_->signal = SIGKILL;
    ended_at_ = Clock::now();
  }
  finished_ = true;
}

void ChildProcess::handle_end(ExitStatus status) {
  token_ = 0;
  exit_status_ = status;
  ended_at_ = Clock::now();
  int unread = 0;
  if (stderr_ && ::ioctl(stderr_->fd(), FIONREAD, &unread) == 0)
    unread_stderr_bytes_ = static_cast<std::size_t>(unread);
  stderr_progress_at_ = ended_at_;
  if (stderr_ || (relay_ && relay_->blocked())) return drain_stderr();
  finish();
}

// Continues to read and relay the bytes that the child wrote before its end, as long as bytes are read or
// relayed.
void ChildProcess::drain_stderr() {
  if (!stderr_timer_) stderr_timer_.emplace(*loop_);
  stderr_timer_->arm_after(kStderrLinger, [this] {
    if (check_stderr_progress()) return drain_stderr();
    relay_.reset();
    close_stderr();
  });
}

bool ChildProcess::check_stderr_progress() {
  if (unread_stderr_bytes_ == 0 && !(relay_ && relay_->blocked())) return false;
  const std::uint64_t progress = stderr_read_bytes_ + (relay_ ? relay_->written_bytes() : 0);
  if (std::exchange(stderr_progress_bytes_, progress) != progress) stderr_progress_at_ = Clock::now();
  return Clock::now() - stderr_progress_at_ < max_relay_stall_;
}

void ChildProcess::wait_for_stderr_data() {
  if (stderr_) stderr_->when_readable([this] { on_stderr_readable(); });
}

// Reads once per turn, so that a child that writes much does not block other work of the loop.
void ChildProcess::on_stderr_readable() {
  const std::span<char> buffer = loop_->scratch_buffer();
  const ssize_t n = ::read(stderr_->fd(), buffer.data(), buffer.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return wait_for_stderr_data();
  if (n <= 0) return close_stderr();
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
  stderr_read_bytes_ += bytes.size();
  unread_stderr_bytes_ -= std::min(unread_stderr_bytes_, bytes.size());
  if (relay_ && error_context_.redactor.empty()) relay_->write(bytes);
  tail_.feed(bytes);
  if (!relay_ || !relay_->blocked()) return wait_for_stderr_data();
  relay_->when_drained([this] { wait_for_stderr_data(); });
}

void ChildProcess::handle_stderr_line(std::string_view line) {
  if (relay_ && !error_context_.redactor.empty()) relay_->write(redacted_line(line) + '\n');
  if (stderr_mode_ == StderrMode::log || on_stderr_line_) log_stderr_line(line);
}

std::string ChildProcess::redacted_line(std::string_view line) const {
  const Redactor& redactor = error_context_.redactor;
  return tail_.may_be_truncated(line) ? redactor.redact_excerpt(line) : redactor.redact(line);
}

void ChildProcess::log_stderr_line(std::string_view line) {
  if (!log_limit_.admit()) {
    ++dropped_line_count_;
    if (drop_report_timer_) return;
    drop_report_timer_.emplace(*loop_);
    drop_report_timer_->arm_after(kLogInterval, [this] { report_dropped_lines(); });
    return;
  }
  const std::string redacted = redacted_line(line);
  if (stderr_mode_ == StderrMode::log) log_.info("stderr", {{"child", name_}, {"line", redacted}});
  if (on_stderr_line_) on_stderr_line_(redacted);
}

void ChildProcess::report_dropped_lines() {
  drop_report_timer_.reset();
  const std::uint64_t count = std::exchange(dropped_line_count_, 0);
  if (count == 0) return;
  if (stderr_mode_ == StderrMode::log)
    log_.warning("stderr lines dropped: stderr_log_lines exceeded",
                 {{"child", name_}, {"dropped", std::to_string(count)}});
  if (on_stderr_line_)
    on_stderr_line_("[" + std::to_string(count) + " lines dropped: stderr_log_lines exceeded]");
}

void ChildProcess::record_stdout_line(std::string_view line) {
  stdout_tail_.feed(line);
  stdout_tail_.feed("\n");
}

std::vector<std::string> ChildProcess::last_stderr() const {
  std::vector<std::string> lines = tail_.lines();
  for (std::string& line : lines) line = redacted_line(line);
  return lines;
}

void ChildProcess::close_stderr() {
  stderr_.reset();
  unread_stderr_bytes_ = 0;
  tail_.finish();
  if (relay_) relay_->end_line();
  report_dropped_lines();
  if (!exit_status_) {
    if (token_ != 0) keeper_->ping();  // the keeper is expected to report the child's end soon
    return;
  }
  if (!relay_ || !relay_->blocked()) return finish();
  relay_->when_drained([this] { finish(); });
}

void ChildProcess::finish() {
  const auto self = shared_from_this();  // a callback may release the last reference
  stderr_timer_.reset();
  finished_ = true;
  while (!waiters_.empty()) {
    const Callback callback = std::move(waiters_.begin()->second);
    waiters_.erase(waiters_.begin());
    callback(*exit_status_);
  }
}

void ChildProcess::when_exited(Callback callback) {
  if (!finished_) {
    add_waiter(std::move(callback));
    return;
  }
  if (!loop_) return;
  loop_->post([callback = std::move(callback), status = *exit_status_] { callback(status); });
}

ChildProcess::WaiterId ChildProcess::add_waiter(Callback callback) {
  waiters_.emplace(++last_waiter_id_, std::move(callback));
  return last_waiter_id_;
}

Task<ExitStatus> ChildProcess::wait_exited() {
  const auto self = shared_from_this();
  static_cast<void>(co_await ExitWait(*this));
  co_return *exit_status_;
}

Task<ExitStatus> ChildProcess::stop(std::chrono::milliseconds grace) {
  const auto self = shared_from_this();
  stdin_.reset();                    // in case release_stdin() was not called
  if (token_ != 0) keeper_->ping();  // the keeper must report the child's end
  const bool ended_by_itself = co_await ExitWait(*this, grace);
  if (ended_by_itself) co_return *exit_status_;
  signal(SIGTERM);
  const bool ended_after_sigterm = co_await ExitWait(*this, grace);
  if (ended_after_sigterm) co_return *exit_status_;
  signal(SIGKILL);
  static_cast<void>(co_await ExitWait(*this));
  co_return *exit_status_;
}

void ChildProcess::kill() {
  signal(SIGKILL);
}

void ChildProcess::signal(int signal) {
  if (token_ != 0) keeper_->signal(token_, signal);
}

std::string_view ChildProcess::exit_failure_code() const {
  if (keeper_died_) return failure::keeper_died;
  if (exit_status_->out_of_memory) return failure::out_of_memory;
  if (!exit_status_->signal) return failure::exited;
  // The kernel sends these two signals when a limit is exceeded.
  if (*exit_status_->signal == SIGXCPU) return failure::cpu_limit;
  if (*exit_status_->signal == SIGXFSZ) return failure::file_size_limit;
  return failure::killed_by_signal;
}

Error ChildProcess::exit_error() const {
  std::string message = "`" + name_ + "` ";
  message += keeper_died_ ? "was killed because its keeper process died," : exit_status_->to_string();
  message += " after " + format_elapsed(ended_at_ - started_at_);
  Error error = Error(ErrorKind::process_exited, std::move(message)).with([&](ErrorDetail& detail) {
    detail.exit_status = exit_status_->code;
    detail.exit_signal = exit_status_->signal;
  });
  return with_error_context(std::move(error), exit_failure_code());
}

Error ChildProcess::with_error_context(Error error, std::string_view code) const {
  Error complete = error_context_.add_to(std::move(error), code, last_stderr(), stdout_tail_.lines());
  if (stderr_mode_ != StderrMode::relay) return complete;
  return std::move(complete).with([](ErrorDetail& detail) { detail.stderr_shown = true; });
}

Result<void> StartWait::await_resume() const {
  if (child_->start_error_) return *child_->start_error_;
  return {};
}

ExitWait::ExitWait(ChildProcess& child, std::optional<Clock::duration> timeout)
    : child_(&child), timeout_(timeout) {}

ExitWait::~ExitWait() {
  if (waiter_ != 0) child_->remove_waiter(waiter_);
}

void ExitWait::await_suspend(std::coroutine_handle<> handle) {
  waiter_ = child_->add_waiter([handle](const ExitStatus&) { handle.resume(); });
  if (!timeout_) return;
  timer_.emplace(child_->loop());
  timer_->arm_after(*timeout_, [handle] { handle.resume(); });
}

}  // namespace fairlead::process
