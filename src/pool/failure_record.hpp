// FailureRecord: how the calls and the connections of an upstream fail, and what is said of it. Private to
// the layer.
#pragma once

#include <memory>
#include <optional>

#include "fairlead/base/error.hpp"
#include "fairlead/pool/upstream_connection.hpp"

namespace fairlead::pool {

class ManagedUpstream;

class FailureRecord {
 public:
  // `upstream` owns it.
  explicit FailureRecord(ManagedUpstream& upstream) : upstream_(upstream) {}

  const std::optional<Error>& last_error() const noexcept { return last_error_; }
  void set_last_error(const Error& error) { last_error_ = error; }
  // Why a connection is closed with calls under way: the error of these calls.
  void set_close_reason(const Error& reason) { close_reason_ = reason; }
  // A new connection is ready.
  void begin_connection() { close_reason_.reset(); }

  // A call sent on `connection` has failed. Returns the error for its caller.
  Error call_failed(const std::shared_ptr<UpstreamConnection>& connection, Error error);
  // The connection of `generation` has ended, or a ping has found it dead.
  void connection_lost(std::uint64_t generation, const Error& lost);
  // It has answered neither a ping nor its calls: it is replaced.
  void unresponsive();

 private:
  void count_crashes(const Error& reason);

  ManagedUpstream& upstream_;
  std::optional<Error> last_error_;
  std::optional<Error> close_reason_;
};

}  // namespace fairlead::pool
