#include "transport/event_store.hpp"

#include <algorithm>
#include <charconv>

namespace fairlead::transport {

EventStore::~EventStore() {
  shared_budget_->used_bytes -= retained_bytes_;
}

void EventStore::charge_to(const std::shared_ptr<ByteAccount>& account) {
  account_ = account;
  charge_ = ByteCharge(account);
}

EventStore::EventId EventStore::allocate_id(std::uint64_t stream) {
  return EventId{stream, ++streams_[stream].last_event};
}

void EventStore::add(EventId id, const http::sse::EncodedEvent& event) {
  std::size_t size = sizeof(Event);
  for (const Bytes& part : event) size += part.size();
  events_.push_back(Event{id, event, size});
  ++streams_[id.stream].retained_count;
  retained_bytes_ += size;
  shared_budget_->used_bytes += size;
  while (!events_.empty() && !charge_within_limits()) evict_oldest();
}

bool EventStore::charge_within_limits() {
  if (events_.size() > max_events_ || retained_bytes_ > max_bytes_ ||
      shared_budget_->used_bytes > shared_budget_->max_bytes)
    return false;
  if (!account_) return true;
  const ByteBudget& budget = account_->budget();
  const std::size_t added = retained_bytes_ - std::min(retained_bytes_, charge_.bytes());
  return account_->used_bytes() + added <= budget.limits().max_client_buffer_bytes / 2 &&
         budget.used_bytes() + added <= budget.limits().max_buffer_bytes / 2 &&
         charge_.resize(retained_bytes_) == ChargeOutcome::charged;
}

void EventStore::evict_oldest() {
  const Event& oldest = events_.front();
  const auto stream = streams_.find(oldest.id.stream);
  stream->second.last_evicted_event = oldest.id.event;
  if (--stream->second.retained_count == 0 && stream->second.ended) streams_.erase(stream);
  release_bytes(oldest);
  events_.pop_front();
}

void EventStore::release_bytes(const Event& event) noexcept {
  retained_bytes_ -= event.bytes;
  shared_budget_->used_bytes -= event.bytes;
  if (charge_.bytes() > retained_bytes_) charge_.set(retained_bytes_);
}

void EventStore::end_stream(std::uint64_t stream, Clock::time_point now) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  found->second.ended = true;
  if (found->second.retained_count == 0) {
    streams_.erase(found);
  } else {
    ended_streams_.push({now, stream});
  }
  // Removes entries of streams that are already forgotten, so that the list does not grow beyond the number
  // of retained events. Streams that ended earlier are forgotten earlier.
  while (!ended_streams_.empty() && !streams_.contains(ended_streams_.front().second)) ended_streams_.pop();
}

void EventStore::drop_ended(Clock::time_point until) {
  bool erased = false;
  for (; !ended_streams_.empty() && ended_streams_.front().first <= until; ended_streams_.pop()) {
    erased = streams_.erase(ended_streams_.front().second) > 0 || erased;
  }
  if (!erased) return;
  std::erase_if(events_, [this](const Event& event) {
    if (streams_.contains(event.id.stream)) return false;
    release_bytes(event);
    return true;
  });
}

std::optional<std::vector<http::sse::EncodedEvent>> EventStore::events_after(EventId id) const {
  const auto stream = streams_.find(id.stream);
  if (stream == streams_.end() || id.event > stream->second.last_event ||
      id.event < stream->second.last_evicted_event)
    return std::nullopt;
  return retained_events_after(id);
}

std::vector<http::sse::EncodedEvent> EventStore::retained_events_after(EventId id) const {
  std::vector<http::sse::EncodedEvent> events;
  for (const Event& event : events_) {
    if (event.id.stream == id.stream && event.id.event > id.event) events.push_back(event.parts);
  }
  return events;
}

std::uint64_t EventStore::last_event_number(std::uint64_t stream) const {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? 0 : found->second.last_event;
}

std::string EventStore::format_id(EventId id) {
  return std::to_string(id.stream) + "-" + std::to_string(id.event);
}

std::optional<EventStore::EventId> EventStore::parse_id(std::string_view text) {
  EventId id;
  const char* const end = text.data() + text.size();
  const auto [dash, bad_stream] = std::from_chars(text.data(), end, id.stream);
  if (bad_stream != std::errc() || dash == end || *dash != '-') return std::nullopt;
  const auto [rest, bad_event] = std::from_chars(dash + 1, end, id.event);
  // Accepts only the exact spelling of format_id(): no leading zeros, no trailing characters.
  if (bad_event != std::errc() || rest != end || format_id(id) != text) return std::nullopt;
  return id;
}

}  // namespace fairlead::transport
