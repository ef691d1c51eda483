// ConnectionSlot: the connection that an upstream has, with its place among the processes, from the end of
// the handshake until it is closed. Private to the layer.
#pragma once

#include <memory>
#include <optional>

#include "fairlead/pool/upstream_connection.hpp"
#include "pool/core.hpp"

namespace fairlead::pool {

class ConnectionSlot {
 public:
  // `upstream` owns it.
  explicit ConnectionSlot(ManagedUpstream& upstream) : upstream_(upstream) {}
  // A pool that is not shut down first leaves nothing running either.
  ~ConnectionSlot();
  ConnectionSlot(const ConnectionSlot&) = delete;

  void fill(std::shared_ptr<UpstreamConnection> connection, Place place);
  // Null when there is none.
  const std::shared_ptr<UpstreamConnection>& connection() const noexcept { return connection_; }
  bool holds_process() const noexcept { return place_ && place_->process; }
  // A connection is being closed, and will give its place among the processes to another.
  bool gives_place() const noexcept { return leaving_process_; }
  // Empties the slot, closes the connection, and tells the supervisor when it is gone. REQUIRES:
  // connection().
  void close();

 private:
  static Task<void> close_down(std::shared_ptr<ManagedUpstream> self,
                               std::shared_ptr<UpstreamConnection> connection, Place place,
                               std::uint64_t generation);

  ManagedUpstream& upstream_;
  std::shared_ptr<UpstreamConnection> connection_;
  std::optional<Place> place_;
  bool leaving_process_ = false;
};

}  // namespace fairlead::pool
