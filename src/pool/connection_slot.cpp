#include "pool/connection_slot.hpp"

#include <utility>

#include "pool/upstream.hpp"

namespace fairlead::pool {

ConnectionSlot::~ConnectionSlot() {
  if (connection_) connection_->abort();
}

void ConnectionSlot::fill(std::shared_ptr<UpstreamConnection> connection, ConnectionReservation reservation) {
  connection_ = std::move(connection);
  reservation_.emplace(std::move(reservation));
}

void ConnectionSlot::close() {
  closing_process_ = has_process();
  ConnectionReservation reservation = std::move(*reservation_);
  reservation_.reset();
  upstream_.core->loop.spawn(close_connection(upstream_.shared_from_this(),
                                              std::exchange(connection_, nullptr), std::move(reservation),
                                              upstream_.generation()));
}

Task<void> ConnectionSlot::close_connection(std::shared_ptr<ManagedUpstream> self,
                                            std::shared_ptr<UpstreamConnection> connection,
                                            ConnectionReservation reservation, std::uint64_t generation) {
  co_await connection->close();
  { const ConnectionReservation released = std::move(reservation); }
  self->slot.closing_process_ = false;
  if (self->generation() == generation) self->lifecycle.dispatch(Supervisor::Event::closed);
}

}  // namespace fairlead::pool
