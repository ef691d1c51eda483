#include "pool/connection_slot.hpp"

#include <utility>

#include "pool/upstream.hpp"

namespace fairlead::pool {

ConnectionSlot::~ConnectionSlot() {
  if (connection_) connection_->abort();
}

void ConnectionSlot::fill(std::shared_ptr<UpstreamConnection> connection, Place place) {
  connection_ = std::move(connection);
  place_.emplace(std::move(place));
}

void ConnectionSlot::close() {
  leaving_process_ = holds_process();
  Place place = std::move(*place_);
  place_.reset();
  upstream_.core->loop.spawn(close_down(upstream_.shared_from_this(), std::exchange(connection_, nullptr),
                                        std::move(place), upstream_.generation()));
}

Task<void> ConnectionSlot::close_down(std::shared_ptr<ManagedUpstream> self,
                                      std::shared_ptr<UpstreamConnection> connection, Place place,
                                      std::uint64_t generation) {
  Task<void> closing = connection->close();
  co_await closing;
  { const Place left = std::move(place); }
  self->slot.leaving_process_ = false;
  if (self->generation() == generation) self->lifecycle.tell(Supervisor::Event::gone);
}

}  // namespace fairlead::pool
