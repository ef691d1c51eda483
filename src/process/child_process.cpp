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

// How long after a child's end its stderr is still read, should a process that escaped us hold it open.
constexpr std::chrono::milliseconds kStderrLinger{200};
// The interval of Limits::stderr_log_lines.
constexpr std::chrono::milliseconds kLogInterval{1'000};

std::string in_words(Clock::duration time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  if (ms < 1000) return std::to_string(ms) + " ms";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ms) / 1000);
  return text;
}

}  // namespace

ChildProcess::ChildProcess(Loop& loop, std::string name, StderrMode mode, const Limits& limits, Log log)
    : loop_(&loop),
      keeper_(KeeperClient::of(loop)),
      name_(std::move(name)),
      mode_(mode),
      log_(std::move(log)),
      tail_(limits.stderr_keep_lines, limits.stderr_line_bytes),
      log_limit_(limits.stderr_log_lines, kLogInterval),
      relay_stall_(limits.write_stall) {
  if (mode == StderrMode::relay) relay_.emplace(loop);
  keeper_->set_timeout(limits.keeper_timeout);
  keeper_->enroll(*this);
}

ChildProcess::~ChildProcess() {
  keeper_->dismiss(*this);
  if (token_ != 0) keeper_->release(token_);
}

Result<void> ChildProcess::attach(UniqueFd in, UniqueFd out, UniqueFd err) {
  stdin_ = std::move(in);
  stdout_ = std::move(out);
  if (!err) return {};
  Result<Descriptor> readable = Descriptor::adopt(*loop_, std::move(err));
  if (!readable) return Error(ErrorKind::spawn, readable.error().message());
  stderr_ = std::move(*readable);
  return {};
}

Result<void> ChildProcess::launch(SpawnOrder order) {
  path_ = order.path;
  cwd_ = order.cwd;
  last_words_ = std::move(order.last_words);
  // Only whole lines can be searched for secrets.
  if (mode_ == StderrMode::log || (mode_ == StderrMode::relay && !last_words_.redactor.empty()))
    tail_.on_line([this](std::string_view line) { on_line(line); });
  const Result<void> entered = enter_manifest(order);
  if (!entered) return last_words_.on(entered.error(), {});
  const Result<void> found = find_cgroup(order);
  if (!found) return last_words_.on(found.error(), {});
  plan_ = order.belts;
  manifest_ = order.manifest.path;
  const Result<KeeperClient::Token> token = keeper_->spawn(std::move(order), *this);
  if (!token) return last_words_.on(token.error(), {});
  token_ = *token;
  return {};
}

Result<void> ChildProcess::go_without(SpawnOrder& order, Belt belt, const std::string& why_not) {
  const keeper::Flag flag = flag_of(belt);
  if (!order.belts.wants(flag)) return {};
  if (order.belts.requires_(flag)) return belt_error(name_, belt, why_not, ENOTSUP);
  order.belts.drop(flag);
  belts_.push_back({belt, false, why_not});
  return {};
}

Result<void> ChildProcess::enter_manifest(SpawnOrder& order) {
  if (!order.belts.wants(keeper::with_manifest)) return {};
  const Result<void> entered = keeper_->enter_keeper(order.manifest);
  if (entered || order.manifest.required) return entered;
  return go_without(order, Belt::manifest, entered.error().message());
}

Result<void> ChildProcess::find_cgroup(SpawnOrder& order) {
  if (!order.belts.wants(keeper::with_cgroup)) return {};
  const CgroupHome& home = keeper_->cgroup_home(order.belts.cgroup_parent);
  order.cgroup_home = home.directory;
  const auto limit = [&](Belt belt, std::string_view controller) -> Result<void> {
    if (!order.belts.wants(flag_of(belt))) return {};
    const Result<void> enabled = enable_controller(home.directory, controller);
    if (enabled) return {};
    return go_without(order, belt, enabled.error().message());
  };
  if (!home.directory.empty()) {
    const Result<void> memory = limit(Belt::memory_max, "memory");
    if (!memory) return memory;
    return limit(Belt::pids_max, "pids");
  }
  for (const Belt belt : {Belt::cgroup, Belt::memory_max, Belt::pids_max}) {
    const Result<void> without = go_without(order, belt, home.why_not);
    if (!without) return without;
  }
  return {};
}

void ChildProcess::started(pid_t pid, const keeper::Outcome& outcome) {
  pid_ = pid;
  started_at_ = Clock::now();
  std::vector<BeltState> belts = belts_of(plan_, outcome);
  belts.insert(belts.end(), belts_.begin(), belts_.end());
  belts_ = std::move(belts);
  for (const BeltState& state : belts_) {
    if (state.in_force) continue;
    if (state.belt != Belt::cgroup) {
      log_.warning("child runs without a belt",
                   {{"child", name_}, {"belt", std::string(to_string(state.belt))}, {"why", state.why_not}});
    } else if (keeper_->first_without_cgroup()) {
      // The rule on many systems, and the other belts hold a child as well.
      log_.info("children run without a cgroup", {{"why", state.why_not}});
    }
  }
  read_stderr();
  if (starter_) std::exchange(starter_, nullptr).resume();
}

void ChildProcess::refused(const keeper::Outcome& outcome) {
  start_failed(explain_refusal(name_, path_, cwd_, manifest_, outcome));
}

void ChildProcess::start_failed(Error error) {
  token_ = 0;
  start_error_ = last_words_.on(std::move(error), {});
  if (starter_) std::exchange(starter_, nullptr).resume();
}

// A child whose keeper dies is killed by the kernel.
void ChildProcess::keeper_died() {
  if (pid_ == 0) {
    return start_failed(keeper_lost(name_, keeper_->has_answered()));
  }
  keeper_died_ = true;
  ExitStatus status;
  status.signal = SIGKILL;
  on_end(status);
}

// What is left of us must not touch the loop again. Nobody is called back: there is no loop to do it on.
void ChildProcess::loop_ends() {
  loop_ = nullptr;
  token_ = 0;
  starter_ = nullptr;
  stderr_.reset();
  relay_.reset();
  drop_report_.reset();
  linger_.reset();
  waiters_.clear();
  if (!status_) {
    status_.emplace();
    status_->signal = SIGKILL;
    ended_at_ = Clock::now();
  }
  finished_ = true;
}

void ChildProcess::on_end(ExitStatus status) {
  token_ = 0;
  status_ = status;
  ended_at_ = Clock::now();
  int unread = 0;
  if (stderr_ && ::ioctl(stderr_->fd(), FIONREAD, &unread) == 0) unread_ = static_cast<std::size_t>(unread);
  progress_at_ = ended_at_;
  if (stderr_ || (relay_ && relay_->blocked())) return wait_for_stderr();
  finish();
}

// What the child wrote before its end is read and relayed, as long as our own stderr accepts some of it.
void ChildProcess::wait_for_stderr() {
  if (!linger_) linger_.emplace(*loop_);
  linger_->arm_after(kStderrLinger, [this] {
    if (stderr_makes_progress()) return wait_for_stderr();
    relay_.reset();
    end_stderr();
  });
}

bool ChildProcess::stderr_makes_progress() {
  if (unread_ == 0 && !(relay_ && relay_->blocked())) return false;
  const std::uint64_t progress = stderr_read_ + (relay_ ? relay_->written() : 0);
  if (std::exchange(progress_, progress) != progress) progress_at_ = Clock::now();
  return Clock::now() - progress_at_ < relay_stall_;
}

void ChildProcess::read_stderr() {
  if (stderr_) stderr_->when_readable([this] { on_stderr(); });
}

// One read a turn: a child that floods must not keep the loop from its other work.
void ChildProcess::on_stderr() {
  const std::span<char> buffer = loop_->scratch();
  const ssize_t n = ::read(stderr_->fd(), buffer.data(), buffer.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return read_stderr();
  if (n <= 0) return end_stderr();
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
  stderr_read_ += bytes.size();
  unread_ -= std::min(unread_, bytes.size());
  if (relay_ && last_words_.redactor.empty()) relay_->write(bytes);
  tail_.feed(bytes);
  if (!relay_ || !relay_->blocked()) return read_stderr();
  relay_->when_drained([this] { read_stderr(); });
}

void ChildProcess::on_line(std::string_view line) {
  if (mode_ == StderrMode::log) return log_line(line);
  if (relay_) relay_->write(redacted(line) + '\n');
}

std::string ChildProcess::redacted(std::string_view line) const {
  const Redactor& redactor = last_words_.redactor;
  return tail_.may_be_cut(line) ? redactor.redact_excerpt(line) : redactor.redact(line);
}

void ChildProcess::log_line(std::string_view line) {
  if (!log_limit_.admit()) {
    ++dropped_lines_;
    if (drop_report_) return;
    drop_report_.emplace(*loop_);
    drop_report_->arm_after(kLogInterval, [this] { report_dropped_lines(); });
    return;
  }
  log_.info("stderr", {{"child", name_}, {"line", redacted(line)}});
}

void ChildProcess::report_dropped_lines() {
  drop_report_.reset();
  const std::uint64_t count = std::exchange(dropped_lines_, 0);
  if (count == 0) return;
  log_.warning("stderr lines dropped: stderr_log_lines exceeded",
               {{"child", name_}, {"dropped", std::to_string(count)}});
}

std::vector<std::string> ChildProcess::last_stderr() const {
  std::vector<std::string> lines = tail_.lines();
  for (std::string& line : lines) line = redacted(line);
  return lines;
}

void ChildProcess::end_stderr() {
  stderr_.reset();
  unread_ = 0;
  tail_.finish();
  report_dropped_lines();
  if (!status_) {
    if (token_ != 0) keeper_->ping();  // it is probably to report the end
    return;
  }
  if (!relay_ || !relay_->blocked()) return finish();
  relay_->when_drained([this] { finish(); });
}

void ChildProcess::finish() {
  const auto self = shared_from_this();  // a callback may let go of us
  linger_.reset();
  finished_ = true;
  while (!waiters_.empty()) {
    const Callback callback = std::move(waiters_.begin()->second);
    waiters_.erase(waiters_.begin());
    callback(*status_);
  }
}

void ChildProcess::when_exited(Callback callback) {
  if (!finished_) {
    add_waiter(std::move(callback));
    return;
  }
  if (!loop_) return;
  loop_->post([callback = std::move(callback), status = *status_] { callback(status); });
}

ChildProcess::WaiterId ChildProcess::add_waiter(Callback callback) {
  waiters_.emplace(++last_waiter_, std::move(callback));
  return last_waiter_;
}

Task<ExitStatus> ChildProcess::exited() {
  const auto self = shared_from_this();
  static_cast<void>(co_await ExitWait(*this));
  co_return *status_;
}

Task<ExitStatus> ChildProcess::stop(std::chrono::milliseconds grace) {
  const auto self = shared_from_this();
  stdin_.reset();                    // if nobody took it
  if (token_ != 0) keeper_->ping();  // it is to report the end
  const bool ended_by_itself = co_await ExitWait(*this, grace);
  if (ended_by_itself) co_return *status_;
  signal(SIGTERM);
  const bool ended_when_told = co_await ExitWait(*this, grace);
  if (ended_when_told) co_return *status_;
  signal(SIGKILL);
  static_cast<void>(co_await ExitWait(*this));
  co_return *status_;
}

void ChildProcess::kill() {
  signal(SIGKILL);
}

void ChildProcess::signal(int signal) {
  if (token_ != 0) keeper_->signal(token_, signal);
}

std::string_view ChildProcess::exit_code() const {
  if (keeper_died_) return failure::keeper_died;
  if (status_->out_of_memory) return failure::out_of_memory;
  if (!status_->signal) return failure::exited;
  // Those the kernel sends when a limit is reached.
  if (*status_->signal == SIGXCPU) return failure::cpu_limit;
  if (*status_->signal == SIGXFSZ) return failure::file_size_limit;
  return failure::killed_by_signal;
}

Error ChildProcess::exit_error() const {
  std::string message = "`" + name_ + "` ";
  message += keeper_died_ ? "was killed because its keeper process died," : status_->to_string();
  message += " after " + in_words(ended_at_ - started_at_);
  Error error = Error(ErrorKind::process_exited, std::move(message)).with([&](ErrorDetail& detail) {
    detail.exit_status = status_->code;
    detail.exit_signal = status_->signal;
  });
  return with_last_words(std::move(error), exit_code());
}

Error ChildProcess::with_last_words(Error error, std::string_view code) const {
  return last_words_.on(std::move(error), code, last_stderr());
}

Result<void> StartWait::await_resume() const {
  if (child_->start_error_) return *child_->start_error_;
  return {};
}

ExitWait::ExitWait(ChildProcess& child, std::optional<Clock::duration> patience)
    : child_(&child), patience_(patience) {}

ExitWait::~ExitWait() {
  if (waiter_ != 0) child_->remove_waiter(waiter_);
}

void ExitWait::await_suspend(std::coroutine_handle<> handle) {
  waiter_ = child_->add_waiter([handle](const ExitStatus&) { handle.resume(); });
  if (!patience_) return;
  timer_.emplace(child_->loop());
  timer_->arm_after(*patience_, [handle] { handle.resume(); });
}

}  // namespace fairlead::process
