#include "connection/child_connection.hpp"

#include "fairlead/process/failure.hpp"

namespace fairlead {

namespace {

using std::chrono::milliseconds;

// A process that ends closes its pipes a moment before it can be reaped.
constexpr milliseconds kExitFollowsEof{500};
// A process that escaped from an ended child may hold its stdout open; it has this long to be silent.
constexpr milliseconds kEofFollowsExit{250};
// So often it is waited for again while its last output is still being decoded.
constexpr int kEofWaits = 20;

}  // namespace

Result<std::shared_ptr<Connection>> ChildConnection::create(Loop& loop, std::shared_ptr<Child> child,
                                                            StreamOptions options) {
  Result<Descriptor> in = Descriptor::adopt(loop, child->take_stdout());
  if (!in) return in.error();
  Result<Descriptor> out = Descriptor::adopt(loop, child->take_stdin());
  if (!out) return out.error();
  options.description = child->name() + " (pid " + std::to_string(child->pid()) + ")";
  std::shared_ptr<ChildConnection> connection(
      new ChildConnection(loop, std::move(child), std::move(*in), std::move(*out), std::move(options)));
  std::weak_ptr<Connection> weak = connection;
  connection->child_->when_exited([weak](const ExitStatus&) {
    if (const auto self = weak.lock()) static_cast<ChildConnection&>(*self).child_exited();
  });
  return std::shared_ptr<Connection>(std::move(connection));
}

ChildConnection::ChildConnection(Loop& loop, std::shared_ptr<Child> child, Descriptor in, Descriptor out,
                                 StreamOptions options)
    : StreamConnection(loop, std::move(in), std::move(out), std::move(options)),
      child_(std::move(child)),
      patience_(loop) {}

std::optional<ChildInfo> ChildConnection::child() const {
  ChildInfo info;
  info.pid = child_->pid();
  info.is_running = child_->is_running();
  if (const std::optional<ExitStatus> status = child_->exit_status()) {
    info.exit_code = status->code;
    info.signal = status->signal;
  }
  for (const BeltState& state : child_->belts()) {
    if (!state.in_force)
      info.missing_containment.push_back({std::string(to_string(state.belt)), state.why_not});
  }
  return info;
}

void ChildConnection::lost(Error reason) {
  if (child_->exit_status()) return fail(child_->exit_error());
  if (lost_reason_) return;
  lost_reason_ = std::move(reason);
  patience_.arm_after(kExitFollowsEof, [this] {
    Error error(lost_reason_->kind(), lost_reason_->message() + ", but its process is still running");
    fail(child_->with_last_words(std::move(error), failure::stream_closed));
  });
}

void ChildConnection::child_exited() {
  if (reason()) return;
  if (lost_reason_) return fail(child_->exit_error());
  wait_for_eof(kEofWaits);
}

void ChildConnection::wait_for_eof(int times) {
  patience_.arm_after(kEofFollowsExit, [this, times] {
    if (has_undecoded_input() && times > 0) return wait_for_eof(times - 1);
    fail(child_->exit_error());
  });
}

void ChildConnection::release() {
  patience_.cancel();
  // Not its stdout: a server that writes a last word while it shuts down must not die of it.
  close_output_and_discard_input();
  loop().spawn(stop_child(std::static_pointer_cast<ChildConnection>(shared_from_this())));
}

Task<void> ChildConnection::stop_child(std::shared_ptr<ChildConnection> self) {
  Task<ExitStatus> stopping = self->child_->stop(self->options().limits.stop_grace);
  const ExitStatus status = co_await stopping;
  self->options().log.debug("child ended", {{"name", self->child_->name()}, {"status", status.to_string()}});
  self->close_input();
  self->stopped_.set();
}

Task<void> ChildConnection::settled() {
  const auto self = shared_from_this();
  // The ladder has three rungs, each of which ends by itself.
  const bool gone = co_await stopped_.wait(loop(), 10 * options().limits.stop_grace + milliseconds(5000));
  if (!gone) options().log.error("child is still not gone", {{"name", child_->name()}});
}

}  // namespace fairlead
