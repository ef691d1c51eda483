// ConnectionSlot: owns the current connection of an upstream and its ConnectionReservation, from the end of
// the handshake until the connection is closed. Private to the layer.
#pragma once

#include <memory>
#include <optional>

#include "fairlead/pool/upstream_connection.hpp"
#include "pool/pool_core.hpp"

namespace fairlead::pool {

class ConnectionSlot {
 public:
  // `upstream` owns the slot.
  explicit ConnectionSlot(ManagedUpstream& upstream) : upstream_(upstream) {}
  // Aborts the connection, so that a pool that is destroyed without shutdown() leaves no process behind.
  ~ConnectionSlot();
  ConnectionSlot(const ConnectionSlot&) = delete;

  void fill(std::shared_ptr<UpstreamConnection> connection, ConnectionReservation reservation);
  // Returns null if there is no connection.
  const std::shared_ptr<UpstreamConnection>& connection() const noexcept { return connection_; }
  // Returns whether the connection is one to a child process.
  bool has_process() const noexcept { return reservation_ && reservation_->process_permit; }
  // Returns whether the connection to a process is being closed, so that its process permit will be released
  // soon.
  bool closing_process() const noexcept { return closing_process_; }
  // Empties the slot, closes the connection, and then reports Event::closed. REQUIRES: connection() is not
  // null.
  void close();

 private:
  static Task<void> close_connection(std::shared_ptr<ManagedUpstream> self,
                                     std::shared_ptr<UpstreamConnection> connection,
                                     ConnectionReservation reservation, std::uint64_t generation);

  ManagedUpstream& upstream_;
  std::shared_ptr<UpstreamConnection> connection_;
  std::optional<ConnectionReservation> reservation_;
  bool closing_process_ = false;
};

}  // namespace fairlead::pool
