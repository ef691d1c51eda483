#include "transport/event_store.hpp"

#include <algorithm>
#include <charconv>

namespace fairlead::transport {

EventStore::~EventStore() {
  total_->bytes -= bytes_;
}

void EventStore::charge_to(const std::shared_ptr<ByteAccount>& account) {
  account_ = account;
  charge_ = ByteCharge(account);
}

EventStore::Place EventStore::next(std::uint64_t stream) {
  return Place{stream, ++streams_[stream].last};
}

void EventStore::keep(Place place, const http::sse::Parts& event) {
  std::size_t size = sizeof(Event);
  for (const Bytes& part : event) size += part.size();
  events_.push_back(Event{place, event, size});
  ++streams_[place.stream].kept;
  bytes_ += size;
  total_->bytes += size;
  while (!events_.empty() && !fits()) drop_oldest();
}

bool EventStore::fits() {
  if (events_.size() > max_events_ || bytes_ > max_bytes_ || total_->bytes > total_->most_bytes) return false;
  if (!account_) return true;
  const ByteBudget& budget = account_->budget();
  const std::size_t more = bytes_ - std::min(bytes_, charge_.bytes());
  return account_->used() + more <= budget.limits().max_client_buffer_bytes / 2 &&
         budget.used() + more <= budget.limits().max_buffer_bytes / 2 &&
         charge_.resize(bytes_) == ChargeOutcome::charged;
}

void EventStore::drop_oldest() {
  const Event& oldest = events_.front();
  const auto stream = streams_.find(oldest.place.stream);
  stream->second.dropped = oldest.place.event;
  if (--stream->second.kept == 0 && stream->second.ended) streams_.erase(stream);
  forget_bytes(oldest);
  events_.pop_front();
}

void EventStore::forget_bytes(const Event& event) noexcept {
  bytes_ -= event.bytes;
  total_->bytes -= event.bytes;
  if (charge_.bytes() > bytes_) charge_.set(bytes_);
}

void EventStore::end(std::uint64_t stream, Clock::time_point now) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  found->second.ended = true;
  if (found->second.kept == 0) {
    streams_.erase(found);
  } else {
    ended_.emplace_back(now, stream);
  }
  // Bounds the list by the number of events: a stream that ended earlier lost its events earlier.
  while (!ended_.empty() && !streams_.contains(ended_.front().second)) ended_.pop_front();
}

void EventStore::drop_ended(Clock::time_point until) {
  bool any = false;
  for (; !ended_.empty() && ended_.front().first <= until; ended_.pop_front()) {
    any = streams_.erase(ended_.front().second) > 0 || any;
  }
  if (!any) return;
  std::erase_if(events_, [this](const Event& event) {
    if (streams_.contains(event.place.stream)) return false;
    forget_bytes(event);
    return true;
  });
}

std::optional<std::vector<http::sse::Parts>> EventStore::after(Place place) const {
  const auto stream = streams_.find(place.stream);
  if (stream == streams_.end() || place.event > stream->second.last || place.event < stream->second.dropped)
    return std::nullopt;
  return left_after(place);
}

std::vector<http::sse::Parts> EventStore::left_after(Place place) const {
  std::vector<http::sse::Parts> later;
  for (const Event& event : events_) {
    if (event.place.stream == place.stream && event.place.event > place.event) later.push_back(event.parts);
  }
  return later;
}

std::uint64_t EventStore::last(std::uint64_t stream) const {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? 0 : found->second.last;
}

std::string EventStore::id_of(Place place) {
  return std::to_string(place.stream) + "-" + std::to_string(place.event);
}

std::optional<EventStore::Place> EventStore::read_id(std::string_view id) {
  Place place;
  const char* const end = id.data() + id.size();
  const auto [dash, bad_stream] = std::from_chars(id.data(), end, place.stream);
  if (bad_stream != std::errc() || dash == end || *dash != '-') return std::nullopt;
  const auto [rest, bad_event] = std::from_chars(dash + 1, end, place.event);
  // Only as we spell it: no leading zeros, nothing behind.
  if (bad_event != std::errc() || rest != end || id_of(place) != id) return std::nullopt;
  return place;
}

}  // namespace fairlead::transport
