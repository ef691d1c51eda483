// FailureRecord: handles failed calls and lost connections of an upstream, and stores the errors that its
// status and its calls report. Private to the layer.
#pragma once

#include <memory>
#include <optional>

#include "fairlead/base/error.hpp"
#include "fairlead/pool/upstream_connection.hpp"

namespace fairlead::pool {

class ManagedUpstream;

class FailureRecord {
 public:
  // `upstream` owns the record.
  explicit FailureRecord(ManagedUpstream& upstream) : upstream_(upstream) {}

  const std::optional<Error>& last_error() const noexcept { return last_error_; }
  void set_last_error(const Error& error) { last_error_ = error; }
  // Sets the error of calls that fail because the pool closes their connection.
  void set_close_reason(const Error& reason) { close_reason_ = reason; }
  // To be called when a new connection is ready.
  void clear_close_reason() { close_reason_.reset(); }

  // To be called when a call sent on `connection` has failed. Returns the error for its caller.
  Error on_call_failed(const std::shared_ptr<UpstreamConnection>& connection, Error error);
  // To be called when the connection of `generation` has ended, or a ping has found that it is lost.
  void on_connection_lost(std::uint64_t generation, const Error& lost);
  // To be called when the server has answered neither a ping nor its calls: its connection is replaced.
  void on_unresponsive();

 private:
  void record_tool_crashes(const Error& reason);

  ManagedUpstream& upstream_;
  std::optional<Error> last_error_;
  std::optional<Error> close_reason_;
};

}  // namespace fairlead::pool
