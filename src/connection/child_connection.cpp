#include "connection/child_connection.hpp"

#include "fairlead/process/failure.hpp"

namespace fairlead {

namespace {

using std::chrono::milliseconds;

// How long to wait for the exit status after end of file. An exiting process closes its pipes shortly before
// it can be reaped.
constexpr milliseconds kExitTimeoutAfterEof{500};
// How long to wait for end of file after the child process has exited. Its output may still be in the pipe,
// but a descendant may keep the pipe open without end.
constexpr milliseconds kEofTimeoutAfterExit{250};
// How often the wait for end of file is repeated while input is read that is not decoded yet.
constexpr int kMaxEofWaits = 20;

// Larger frames are taken for messages without a search in them.
constexpr std::size_t kMaxSearchedFrameBytes = 4u << 10;

// Returns false if `frame` is certainly no message. An empty line counts as one: it tells nothing.
bool may_be_message(std::string_view frame) {
  const std::size_t begin = frame.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return true;
  if (frame[begin] != '{' && frame[begin] != '[') return false;
  return frame.size() > kMaxSearchedFrameBytes || frame.find("\"jsonrpc\"") != std::string_view::npos;
}

}  // namespace

Result<std::shared_ptr<Connection>> ChildConnection::create(Loop& loop, std::shared_ptr<Child> child,
                                                            StreamOptions options) {
  Result<Descriptor> in = Descriptor::adopt(loop, child->release_stdout());
  if (!in) return in.error();
  Result<Descriptor> out = Descriptor::adopt(loop, child->release_stdin());
  if (!out) return out.error();
  options.description = child->name() + " (pid " + std::to_string(child->pid()) + ")";
  std::shared_ptr<ChildConnection> connection(
      new ChildConnection(loop, std::move(child), std::move(*in), std::move(*out), std::move(options)));
  std::weak_ptr<Connection> weak = connection;
  connection->child_->when_exited([weak](const ExitStatus&) {
    if (const auto self = weak.lock()) static_cast<ChildConnection&>(*self).handle_child_exit();
  });
  return std::shared_ptr<Connection>(std::move(connection));
}

ChildConnection::ChildConnection(Loop& loop, std::shared_ptr<Child> child, Descriptor in, Descriptor out,
                                 StreamOptions options)
    : StreamConnection(loop, std::move(in), std::move(out), std::move(options)),
      child_(std::move(child)),
      timer_(loop) {}

std::optional<ChildInfo> ChildConnection::child() const {
  ChildInfo info;
  info.pid = child_->pid();
  info.is_running = child_->is_running();
  if (const std::optional<ExitStatus> status = child_->exit_status()) {
    info.exit_code = status->code;
    info.signal = status->signal;
  }
  info.exited_without_reading = exited_without_reading_;
  for (const ContainmentStatus& status : child_->containment_status()) {
    if (!status.in_force)
      info.missing_containment.push_back({std::string(to_string(status.measure)), status.reason});
  }
  return info;
}

void ChildConnection::on_stream_lost(Error reason) {
  if (child_->exit_status()) return end_after_exit();
  if (lost_reason_) return;
  lost_reason_ = std::move(reason);
  timer_.arm_after(kExitTimeoutAfterEof, [this] {
    Error error(lost_reason_->kind(), lost_reason_->message() + ", but its process is still running");
    fail(child_->with_error_context(std::move(error), failure::stream_closed));
  });
}

void ChildConnection::handle_child_exit() {
  if (!close_reason()) end_after_exit();
}

// The stream may be lost because a write failed: then what the child has printed is not read yet.
void ChildConnection::end_after_exit() {
  input_ended() ? fail_after_exit() : wait_for_eof(kMaxEofWaits);
}

void ChildConnection::wait_for_eof(int waits_left) {
  timer_.arm_after(kEofTimeoutAfterExit, [this, waits_left] {
    if (has_undecoded_input() && waits_left > 0) return wait_for_eof(waits_left - 1);
    fail_after_exit();
  });
}

void ChildConnection::fail_after_exit() {
  exited_without_reading_ = output_is_unread();
  fail(child_->exit_error());
}

void ChildConnection::on_frame(std::string_view frame) {
  if (!may_be_message(frame)) child_->record_stdout_line(frame);
}

void ChildConnection::release() {
  timer_.cancel();
  // The child's stdout stays open, so that a server that writes while it shuts down is not killed by SIGPIPE.
  close_output_and_discard_input();
  loop().spawn(stop_child(std::static_pointer_cast<ChildConnection>(shared_from_this())));
}

Task<void> ChildConnection::stop_child(std::shared_ptr<ChildConnection> self) {
  const ExitStatus status = co_await self->child_->stop(self->options().limits.stop_grace);
  self->options().log.debug("child process ended",
                            {{"name", self->child_->name()}, {"status", status.to_string()}});
  self->close_stream();
  self->stopped_.set();
}

Task<void> ChildConnection::wait_closed() {
  const auto self = shared_from_this();
  // Child::stop() has three stages, each of which is limited in time.
  const bool stopped = co_await stopped_.wait(loop(), 10 * options().limits.stop_grace + milliseconds(5000));
  if (!stopped)
    options().log.error("child process has not ended after stop_grace", {{"name", child_->name()}});
}

}  // namespace fairlead
