// ChildProcess: implementation of Child. Receives the keeper's reports about its process, reads the process's
// stderr, and notifies the waiters when the process has ended.
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

  // Takes ownership of this process's ends of the child's pipes. `err` is empty if the child inherits the
  // stderr of this process.
  Result<void> adopt_pipes(UniqueFd in, UniqueFd out, UniqueFd err);
  // Sends the spawn request to the keeper. The result is available through co_await StartWait. Errors carry
  // the error context of the child.
  Result<void> launch(LaunchPlan plan);

  UniqueFd release_stdin() override { return std::move(stdin_); }
  UniqueFd release_stdout() override { return std::move(stdout_); }
  pid_t pid() const noexcept override { return pid_; }
  const std::string& name() const noexcept override { return name_; }
  bool is_running() const noexcept override { return pid_ != 0 && !exit_status_; }
  std::optional<ExitStatus> exit_status() const noexcept override { return exit_status_; }
  std::vector<std::string> last_stderr() const override;
  void record_stdout_line(std::string_view line) override;
  void when_exited(Callback callback) override;
  Task<ExitStatus> wait_exited() override;
  Task<ExitStatus> stop(std::chrono::milliseconds grace) override;
  void kill() override;
  Error exit_error() const override;
  Error with_error_context(Error error, std::string_view code) const override;
  const std::vector<ContainmentStatus>& containment_status() const noexcept override {
    return containment_status_;
  }

  Loop& loop() noexcept { return *loop_; }
  // Returns whether the process has been reaped and its stderr has been read.
  bool finished() const noexcept { return finished_; }
  // REQUIRES: launch() was not called yet.
  void set_on_stderr_line(std::function<void(std::string_view)> callback) {
    on_stderr_line_ = std::move(callback);
  }
  WaiterId add_waiter(Callback callback);
  void remove_waiter(WaiterId id) { waiters_.erase(id); }

 private:
  friend class StartWait;

  void on_started(pid_t pid, const keeper::SpawnOutcome& outcome) override;
  void on_refused(const keeper::SpawnOutcome& outcome) override;
  void on_ended(const ExitStatus& status) override { handle_end(status); }
  void on_keeper_died() override;
  void on_loop_shutdown() override;

  // Writes the keeper's entry to the manifest, if the plan includes a manifest.
  Result<void> prepare_manifest(LaunchPlan& plan);
  // Finds the directory for the child's cgroup and enables the controllers that the plan needs.
  Result<void> prepare_cgroup(LaunchPlan& plan);
  // Removes the measure from the plan and stores `reason` in containment_status_. Fails if the measure is
  // required.
  Result<void> skip_measure(LaunchPlan& plan, ContainmentMeasure measure, const std::string& reason);

  void signal(int signal);
  void handle_stderr_line(std::string_view line);
  void log_stderr_line(std::string_view line);
  std::string redacted_line(std::string_view line) const;
  void report_dropped_lines();
  void record_start_error(Error error);
  std::string_view exit_failure_code() const;
  // Stores the status, drains stderr, then calls finish().
  void handle_end(ExitStatus status);
  void wait_for_stderr_data();
  void on_stderr_readable();
  void close_stderr();
  void drain_stderr();
  // Returns whether bytes were read or relayed within max_relay_stall_, and some are left.
  bool check_stderr_progress();
  // Notifies the waiters.
  void finish();

  Loop* loop_;  // null after the loop has shut down
  std::shared_ptr<KeeperClient> keeper_;
  KeeperClient::Token token_ = 0;
  std::string name_;
  StderrMode stderr_mode_;
  Log log_;
  StderrTail tail_;
  StderrTail stdout_tail_;  // lines that are not messages

  UniqueFd stdin_;
  UniqueFd stdout_;
  std::optional<Descriptor> stderr_;
  std::optional<StderrRelay> relay_;  // StderrMode::relay
  std::function<void(std::string_view)> on_stderr_line_;
  LogRateLimit log_limit_;                // StderrMode::log, on_stderr_line_
  std::uint64_t dropped_line_count_ = 0;  // stderr lines dropped since report_dropped_lines() last ran
  std::optional<Timer> drop_report_timer_;

  // The following members are used from the end of the child until its stderr has been read and relayed to
  // the end.
  std::optional<Timer> stderr_timer_;
  std::chrono::milliseconds max_relay_stall_;  // Limits::write_stall
  // How many of the bytes that were in the pipe when the child ended are not yet read.
  std::size_t unread_stderr_bytes_ = 0;
  std::uint64_t stderr_progress_bytes_ = 0;  // total of bytes read and relayed at the last check
  std::uint64_t stderr_read_bytes_ = 0;      // total since the start
  Clock::time_point stderr_progress_at_;     // when stderr_progress_bytes_ last changed

  std::string program_path_;  // used in error messages, like cwd_ and manifest_path_
  std::string cwd_;
  std::string manifest_path_;
  ChildErrorContext error_context_;
  ContainmentPlan containment_plan_;
  // Until the child has started, contains only the measures that were skipped.
  std::vector<ContainmentStatus> containment_status_;
  std::optional<Error> start_error_;
  std::coroutine_handle<> start_waiter_;

  pid_t pid_ = 0;
  Clock::time_point started_at_;
  Clock::time_point ended_at_;
  std::optional<ExitStatus> exit_status_;
  bool keeper_died_ = false;
  bool finished_ = false;
  WaiterId last_waiter_id_ = 0;
  std::map<WaiterId, Callback> waiters_;
};

// co_await StartWait(child) waits for the keeper's answer to the spawn request. REQUIRES: the child outlives
// the wait.
class StartWait {
 public:
  explicit StartWait(ChildProcess& child) noexcept : child_(&child) {}
  bool await_ready() const noexcept { return child_->pid_ != 0 || child_->start_error_; }
  void await_suspend(std::coroutine_handle<> handle) const noexcept { child_->start_waiter_ = handle; }
  Result<void> await_resume() const;

 private:
  ChildProcess* child_;
};

// co_await ExitWait(child, timeout) waits until child.finished() or until the timeout. Returns
// child.finished(). REQUIRES: the child outlives the wait.
class ExitWait {
 public:
  explicit ExitWait(ChildProcess& child, std::optional<Clock::duration> timeout = {});
  ~ExitWait();
  ExitWait(const ExitWait&) = delete;
  ExitWait& operator=(const ExitWait&) = delete;

  bool await_ready() const noexcept { return child_->finished(); }
  void await_suspend(std::coroutine_handle<> handle);
  bool await_resume() const noexcept { return child_->finished(); }

 private:
  ChildProcess* child_;
  std::optional<Clock::duration> timeout_;
  std::optional<Timer> timer_;
  ChildProcess::WaiterId waiter_ = 0;
};

}  // namespace fairlead::process
