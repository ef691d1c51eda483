// ChildConnection: the stdin and stdout of a child process. When they end it finds out why, so that whoever
// waits for an answer learns how the process ended and what it said last.
#pragma once

#include "connection/stream_connection.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/process/child.hpp"

namespace fairlead {

class ChildConnection final : public StreamConnection {
 public:
  static Result<std::shared_ptr<Connection>> create(Loop& loop, std::shared_ptr<Child> child,
                                                    StreamOptions options);

  Task<void> settled() override;
  std::optional<ChildInfo> child() const override;
  Error explained(Error error, std::string_view code) const override {
    return child_->with_last_words(std::move(error), code);
  }

 private:
  ChildConnection(Loop& loop, std::shared_ptr<Child> child, Descriptor in, Descriptor out,
                  StreamOptions options);

  void lost(Error reason) override;
  void release() override;
  void child_exited();
  void wait_for_eof(int times);
  static Task<void> stop_child(std::shared_ptr<ChildConnection> self);

  std::shared_ptr<Child> child_;
  std::optional<Error> lost_reason_;  // the stream is gone and we wait for the process to say why
  Timer patience_;
  Event stopped_;
};

}  // namespace fairlead
