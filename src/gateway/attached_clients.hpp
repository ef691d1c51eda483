// AttachedClients: the processes that use a gateway which serves its own client on stdin and stdout. Each
// keeps an event stream open, so that the gateway knows when the last one has gone. Loop thread only. Private
// to the layer.
#pragma once

#include <cstddef>
#include <memory>
#include <set>

#include "fairlead/http/server.hpp"
#include "fairlead/loop/event.hpp"

namespace fairlead::gateway {

class AttachedClients : public std::enable_shared_from_this<AttachedClients> {
 public:
  // The path of the event stream. It has no events: it lasts as long as the process is attached.
  static constexpr const char* kPath = "/attached";
  // Processes that can be attached at the same time; further ones get 503 (max_attached_clients).
  static constexpr std::size_t kMaxAttachedClients = 1'000;

  void add_route(http::Server& server);
  std::size_t count() const noexcept { return streams_.size(); }
  // Set while no process is attached.
  Event& none() noexcept { return none_; }
  // Ends all streams: the gateway stops.
  void finish();

 private:
  void serve(const std::shared_ptr<http::Exchange>& exchange);
  void remove(const std::shared_ptr<http::Exchange>& exchange);

  std::set<std::shared_ptr<http::Exchange>> streams_;
  Event none_;
};

}  // namespace fairlead::gateway
