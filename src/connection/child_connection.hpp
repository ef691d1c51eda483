// ChildConnection: a connection over the stdin and stdout of a child process. When the stream ends, the
// connection waits for the exit status, so that calls in flight fail with an error that contains the exit
// status and the last lines of stderr.
#pragma once

#include "connection/stream_connection.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/process/child.hpp"

namespace fairlead {

class ChildConnection final : public StreamConnection {
 public:
  static Result<std::shared_ptr<Connection>> create(Loop& loop, std::shared_ptr<Child> child,
                                                    StreamOptions options);

  Task<void> wait_closed() override;
  std::optional<ChildInfo> child() const override;
  Error with_error_context(Error error, std::string_view failure_code) const override {
    return child_->with_error_context(std::move(error), failure_code);
  }

 private:
  ChildConnection(Loop& loop, std::shared_ptr<Child> child, Descriptor in, Descriptor out,
                  StreamOptions options);

  void on_stream_lost(Error reason) override;
  void release() override;
  void on_frame(std::string_view frame) override;
  void handle_child_exit();
  void end_after_exit();
  void fail_after_exit();
  void wait_for_eof(int waits_left);
  static Task<void> stop_child(std::shared_ptr<ChildConnection> self);

  std::shared_ptr<Child> child_;
  bool exited_without_reading_ = false;
  std::optional<Error> lost_reason_;  // set when the stream has ended and the exit status is awaited
  Timer timer_;    // limits the wait for the exit status, or for end of file after the exit
  Event stopped_;  // set when the child process has ended
};

}  // namespace fairlead
