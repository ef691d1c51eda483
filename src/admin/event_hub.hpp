// EventHub: the events of GET /events. Recent events are kept, so that a client that reconnects with
// Last-Event-ID misses none. Private to the layer.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "admin/event_stream.hpp"
#include "admin/revocation.hpp"
#include "fairlead/base/principal.hpp"

namespace fairlead::admin {

class EventHub : public std::enable_shared_from_this<EventHub> {
 public:
  static constexpr std::size_t kMaxKeptEvents = 1'000;
  static constexpr std::size_t kMaxKeptBytes = 1u << 20;

  struct Limits {
    std::size_t streams = 0;         // max_event_streams
    std::size_t client_streams = 0;  // max_client_event_streams
  };
  explicit EventHub(Limits limits);

  // Sends an event to the clients for which `visible` returns true.
  void publish(std::string_view name, const json::Raw& data, PrincipalSelector visible);

  // Streams the events to the client. `last_id` is the value of Last-Event-ID: the kept events after it are
  // sent first. If some of them are lost, the event `reset` tells the client to read the lists again. Fails
  // with `too_many_requests` if max_event_streams streams are open, or max_client_event_streams of the
  // client.
  Result<void> stream(std::shared_ptr<http::Exchange> exchange, std::string_view last_id);

  // Registers another stream, such as one of log lines: it counts towards the limits and ends when its client
  // loses access. Fails like stream().
  Result<std::shared_ptr<EventStream>> open(std::shared_ptr<http::Exchange> exchange);

  // Ends the streams of the clients that `selected` selects.
  void end_streams(const PrincipalSelector& selected);
  // Ends all streams; later ones are rejected.
  void close();

 private:
  struct Kept {
    std::uint64_t number = 0;
    Bytes event;
    PrincipalSelector visible;
  };
  struct Subscriber {
    std::shared_ptr<EventStream> stream;
    PrincipalPtr principal;
    bool wants_events = false;
  };
  using Position = std::list<Subscriber>::iterator;

  Result<void> check_limits(const Principal& client) const;
  Result<Position> add(std::shared_ptr<http::Exchange> exchange);
  void replay(const Subscriber& subscriber, std::string_view last_id);
  void keep(Kept event);

  Limits limits_;
  std::string epoch_;  // distinguishes the ids of this process from those of others
  std::uint64_t last_number_ = 0;
  std::deque<Kept> kept_;
  std::size_t kept_bytes_ = 0;
  std::list<Subscriber> subscribers_;
  bool closed_ = false;
};

}  // namespace fairlead::admin
