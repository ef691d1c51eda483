// ChildProcess: the Child there is. It is told by the keeper what becomes of its process, reads its stderr,
// and tells whoever waits.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fairlead/base/log_rate_limit.hpp"
#include "fairlead/loop/timer.hpp"
#include "fairlead/process/child.hpp"
#include "process/keeper_client.hpp"
#include "process/launch_plan.hpp"
#include "process/stderr_relay.hpp"
#include "process/stderr_tail.hpp"

namespace fairlead::process {

class ChildProcess final : public Child, private KeeperObserver {
 public:
  using Callback = std::function<void(const ExitStatus&)>;
  using WaiterId = std::uint64_t;

  ChildProcess(Loop& loop, std::string name, StderrMode mode, const Limits& limits, Log log);
  ~ChildProcess() override;

  // Our ends of its pipes; `err` may be none.
  Result<void> attach(UniqueFd in, UniqueFd out, UniqueFd err);
  // Asks the keeper. Await StartWait for its answer. Its errors, as all of this child's, carry its last
  // words.
  Result<void> launch(SpawnOrder order);

  UniqueFd take_stdin() override { return std::move(stdin_); }
  UniqueFd take_stdout() override { return std::move(stdout_); }
  pid_t pid() const noexcept override { return pid_; }
  const std::string& name() const noexcept override { return name_; }
  bool is_running() const noexcept override { return pid_ != 0 && !status_; }
  std::optional<ExitStatus> exit_status() const noexcept override { return status_; }
  std::vector<std::string> last_stderr() const override;
  void when_exited(Callback callback) override;
  Task<ExitStatus> exited() override;
  Task<ExitStatus> stop(std::chrono::milliseconds grace) override;
  void kill() override;
  Error exit_error() const override;
  Error with_last_words(Error error, std::string_view code) const override;
  const std::vector<BeltState>& belts() const noexcept override { return belts_; }

  Loop& loop() noexcept { return *loop_; }
  // Whether all is over: reaped, and stderr read.
  bool finished() const noexcept { return finished_; }
  WaiterId add_waiter(Callback callback);
  void remove_waiter(WaiterId id) { waiters_.erase(id); }

 private:
  friend class StartWait;

  void started(pid_t pid, const keeper::Outcome& outcome) override;
  void refused(const keeper::Outcome& outcome) override;
  void ended(const ExitStatus& status) override { on_end(status); }
  void keeper_died() override;
  void loop_ends() override;

  Result<void> enter_manifest(SpawnOrder& order);
  Result<void> find_cgroup(SpawnOrder& order);
  Result<void> go_without(SpawnOrder& order, Belt belt, const std::string& why_not);

  void signal(int signal);
  void on_line(std::string_view line);
  void log_line(std::string_view line);
  std::string redacted(std::string_view line) const;
  void report_dropped_lines();
  void start_failed(Error error);
  std::string_view exit_code() const;
  void on_end(ExitStatus status);
  void read_stderr();
  void on_stderr();
  void end_stderr();
  void wait_for_stderr();
  bool stderr_makes_progress();
  void finish();

  Loop* loop_;  // null when it has ended before us
  std::shared_ptr<KeeperClient> keeper_;
  KeeperClient::Token token_ = 0;
  std::string name_;
  StderrMode mode_;
  Log log_;
  StderrTail tail_;

  UniqueFd stdin_;
  UniqueFd stdout_;
  std::optional<Descriptor> stderr_;
  std::optional<StderrRelay> relay_;  // StderrMode::relay
  LogRateLimit log_limit_;            // StderrMode::log
  std::uint64_t dropped_lines_ = 0;   // since they were last reported
  std::optional<Timer> drop_report_;

  // After the child's end, while its stderr has not been read and relayed to the end.
  std::optional<Timer> linger_;
  std::chrono::milliseconds relay_stall_;
  std::size_t unread_ = 0;         // what the pipe held at the child's end and has not been read since
  std::uint64_t progress_ = 0;     // bytes read and written at the last look
  std::uint64_t stderr_read_ = 0;  // bytes
  Clock::time_point progress_at_;

  std::string path_;  // for errors
  std::string cwd_;
  std::string manifest_;
  LastWords last_words_;
  BeltPlan plan_;
  std::vector<BeltState> belts_;  // before the start: those we know already are not to be had
  std::optional<Error> start_error_;
  std::coroutine_handle<> starter_;

  pid_t pid_ = 0;
  Clock::time_point started_at_;
  Clock::time_point ended_at_;
  std::optional<ExitStatus> status_;
  bool keeper_died_ = false;
  bool finished_ = false;
  WaiterId last_waiter_ = 0;
  std::map<WaiterId, Callback> waiters_;
};

// co_await StartWait(child): until the keeper has answered. REQUIRES: the child outlives the wait.
class StartWait {
 public:
  explicit StartWait(ChildProcess& child) noexcept : child_(&child) {}
  bool await_ready() const noexcept { return child_->pid_ != 0 || child_->start_error_; }
  void await_suspend(std::coroutine_handle<> handle) const noexcept { child_->starter_ = handle; }
  Result<void> await_resume() const;

 private:
  ChildProcess* child_;
};

// co_await ExitWait(child, patience): until all is over, or for that long. Returns whether it is over.
// REQUIRES: the child outlives the wait.
class ExitWait {
 public:
  explicit ExitWait(ChildProcess& child, std::optional<Clock::duration> patience = {});
  ~ExitWait();
  ExitWait(const ExitWait&) = delete;
  ExitWait& operator=(const ExitWait&) = delete;

  bool await_ready() const noexcept { return child_->finished(); }
  void await_suspend(std::coroutine_handle<> handle);
  bool await_resume() const noexcept { return child_->finished(); }

 private:
  ChildProcess* child_;
  std::optional<Clock::duration> patience_;
  std::optional<Timer> timer_;
  ChildProcess::WaiterId waiter_ = 0;
};

}  // namespace fairlead::process
