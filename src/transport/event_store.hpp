// EventStore: the last events of a session, kept for clients that come back. An id says which stream an event
// was sent on, and only that stream is replayed. Sans I/O; private to the layer.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/byte_budget.hpp"
#include "fairlead/loop/loop.hpp"
#include "http/sse.hpp"

namespace fairlead::transport {

class EventStore {
 public:
  // What all stores of an endpoint keep together.
  struct Total {
    std::size_t most_bytes = 0;
    std::size_t bytes = 0;
  };
  struct Place {
    std::uint64_t stream = 0;
    std::uint64_t event = 0;  // 0 is before the first
  };

  EventStore(std::size_t max_events, std::size_t max_bytes, std::shared_ptr<Total> total)
      : max_events_(max_events), max_bytes_(max_bytes), total_(std::move(total)) {}
  EventStore(const EventStore&) = delete;
  ~EventStore();

  // Charges what is kept to this client. Events take at most half of what the client, and all clients
  // together, may make a server hold, so that they leave room for calls. Call it before the first event.
  void charge_to(const std::shared_ptr<ByteAccount>& account);

  // Makes a stream known that has no events yet.
  void begin(std::uint64_t stream) { streams_[stream]; }
  // The place of a stream's next event; the stream becomes known by it.
  Place next(std::uint64_t stream);
  void keep(Place place, const http::sse::Parts& event);
  // No event will be added; when its last one is dropped the stream is forgotten.
  void end(std::uint64_t stream, Clock::time_point now);
  // Drops the events of the streams that ended before `until`, which thereby are forgotten.
  void drop_ended(Clock::time_point until);

  // What came on that stream after that event. nullopt when the id is none of this session's, or when some of
  // it has been dropped.
  std::optional<std::vector<http::sse::Parts>> after(Place place) const;
  // The last event of a stream, 0 for none.
  std::uint64_t last(std::uint64_t stream) const;
  // The same with what is left of it, should some have been dropped.
  std::vector<http::sse::Parts> left_after(Place place) const;

  static std::string id_of(Place place);
  static std::optional<Place> read_id(std::string_view id);

  std::size_t events() const noexcept { return events_.size(); }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Event {
    Place place;
    http::sse::Parts parts;
    std::size_t bytes;
  };
  struct Stream {
    std::uint64_t last = 0;     // given out
    std::uint64_t dropped = 0;  // the newest that is kept no longer
    std::size_t kept = 0;
    bool ended = false;
  };

  bool fits();
  void drop_oldest();
  void forget_bytes(const Event& event) noexcept;

  std::size_t max_events_;
  std::size_t max_bytes_;
  std::shared_ptr<Total> total_;
  std::shared_ptr<ByteAccount> account_;
  ByteCharge charge_;
  std::size_t bytes_ = 0;
  std::list<Event> events_;                                        // the oldest first
  std::deque<std::pair<Clock::time_point, std::uint64_t>> ended_;  // streams with events, the oldest first
  std::map<std::uint64_t, Stream> streams_;
};

}  // namespace fairlead::transport
