// EventStore: retains the latest SSE events of a legacy session, so that a client can resume a stream that
// was interrupted. An event id names the stream on which the event was sent; only the events of that stream
// are replayed. Does no I/O. Private to src/transport.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/byte_budget.hpp"
#include "fairlead/base/fifo.hpp"
#include "fairlead/loop/loop.hpp"
#include "http/sse.hpp"

namespace fairlead::transport {

class EventStore {
 public:
  // Limits the bytes that all stores of an endpoint retain together.
  struct SharedBudget {
    std::size_t max_bytes = 0;
    std::size_t used_bytes = 0;
  };
  struct EventId {
    std::uint64_t stream = 0;  // number of the stream; 0 is the standalone stream
    // Number of the event in its stream, from 1; 0 is the position before the first event.
    std::uint64_t event = 0;
  };

  EventStore(std::size_t max_events, std::size_t max_bytes, std::shared_ptr<SharedBudget> shared_budget)
      : max_events_(max_events), max_bytes_(max_bytes), shared_budget_(std::move(shared_budget)) {}
  EventStore(const EventStore&) = delete;
  ~EventStore();

  // Charges the retained events to the client with this account. Retained events use at most half of the
  // client's budget, and at most half of the budget of all clients together; the other half remains for
  // requests and responses. Call it before the first event is added.
  void charge_to(const std::shared_ptr<ByteAccount>& account);

  // Registers a stream that has no events yet.
  void add_stream(std::uint64_t stream) { streams_[stream]; }
  // Allocates the id of the stream's next event; registers the stream if it is unknown.
  EventId allocate_id(std::uint64_t stream);
  // Retains an event. Evicts the oldest events of the session, possibly including this one, until the limits
  // are kept.
  void add(EventId id, const http::sse::EncodedEvent& event);
  // Declares that no further event will be added to the stream. The stream is forgotten when its last
  // retained event is dropped.
  void end_stream(std::uint64_t stream, Clock::time_point now);
  // Drops the events of the streams that ended at `until` or earlier, and forgets those streams.
  void drop_ended(Clock::time_point until);

  // Returns all events that were sent on the stream after the event `id`. Returns nullopt if `id` is not the
  // id of an event of this session, or if some of these events are no longer retained.
  std::optional<std::vector<http::sse::EncodedEvent>> events_after(EventId id) const;
  // Returns those events of the stream after `id` that are retained, even if others are not retained any
  // more.
  std::vector<http::sse::EncodedEvent> retained_events_after(EventId id) const;
  // Returns the number of the newest event of a stream; 0 if the stream has had no event or is unknown.
  std::uint64_t last_event_number(std::uint64_t stream) const;

  // Returns the text of an event id, such as "3-17".
  static std::string format_id(EventId id);
  // Returns nullopt unless `text` is exactly what format_id() writes.
  static std::optional<EventId> parse_id(std::string_view text);

  std::size_t retained_event_count() const noexcept { return events_.size(); }
  std::size_t retained_bytes() const noexcept { return retained_bytes_; }

 private:
  struct Event {
    EventId id;
    http::sse::EncodedEvent parts;
    std::size_t bytes;  // that count towards the limits
  };
  struct StreamRecord {
    std::uint64_t last_event = 0;          // number of the newest event
    std::uint64_t last_evicted_event = 0;  // number of the newest event that is no longer retained
    std::size_t retained_count = 0;        // number of retained events
    bool ended = false;                    // end_stream() was called
  };

  // Returns whether the retained events are within all limits. If they are, charges them to the account.
  bool charge_within_limits();
  void evict_oldest();
  void release_bytes(const Event& event) noexcept;

  std::size_t max_events_;
  std::size_t max_bytes_;
  std::shared_ptr<SharedBudget> shared_budget_;
  std::shared_ptr<ByteAccount> account_;
  ByteCharge charge_;
  std::size_t retained_bytes_ = 0;
  std::list<Event> events_;  // oldest first
  // Streams that have ended, with the time of their end; oldest first.
  Fifo<std::pair<Clock::time_point, std::uint64_t>> ended_streams_;
  std::map<std::uint64_t, StreamRecord> streams_;
};

}  // namespace fairlead::transport
