#include "admin/event_hub.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "admin/problem.hpp"
#include "base/random_bytes.hpp"
#include "fairlead/base/base64.hpp"

namespace fairlead::admin {

namespace {

std::string new_epoch() {
  const Result<std::string> bytes = random_bytes(6);
  return bytes ? base64url_encode(*bytes) : std::string("0");
}

// Returns the number in an id of this epoch.
std::optional<std::uint64_t> number_in(std::string_view id, const std::string& epoch) {
  if (!id.starts_with(epoch + ".")) return std::nullopt;
  const std::string_view digits = id.substr(epoch.size() + 1);
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return std::nullopt;
  return number;
}

}  // namespace

EventHub::EventHub(Limits limits) : limits_(limits), epoch_(new_epoch()) {}

void EventHub::publish(std::string_view name, const json::Raw& data, PrincipalSelector visible) {
  Kept event;
  event.number = ++last_number_;
  event.event = encode_event(name, data, epoch_ + "." + std::to_string(event.number));
  event.visible = std::move(visible);
  // send() may end a stream, which removes its subscriber.
  std::vector<std::shared_ptr<EventStream>> receivers;
  for (const Subscriber& subscriber : subscribers_) {
    if (subscriber.wants_events && event.visible(*subscriber.principal))
      receivers.push_back(subscriber.stream);
  }
  for (const auto& stream : receivers) stream->send(event.event);
  keep(std::move(event));
}

void EventHub::keep(Kept event) {
  kept_bytes_ += event.event.size();
  kept_.push_back(std::move(event));
  while (kept_.size() > kMaxKeptEvents || kept_bytes_ > kMaxKeptBytes) {
    kept_bytes_ -= kept_.front().event.size();
    kept_.pop_front();
  }
}

Result<void> EventHub::check_limits(const Principal& client) const {
  if (subscribers_.size() >= limits_.streams)
    return problem(codes::kTooManyRequests,
                   "max_event_streams (" + std::to_string(limits_.streams) + ") streams are open");
  const auto own = std::ranges::count_if(subscribers_, [key = client_key(client)](const Subscriber& other) {
    return client_key(*other.principal) == key;
  });
  if (std::cmp_less(own, limits_.client_streams)) return {};
  return problem(codes::kTooManyRequests, "max_client_event_streams (" +
                                              std::to_string(limits_.client_streams) +
                                              ") streams of this client are open");
}

Result<EventHub::Position> EventHub::add(std::shared_ptr<http::Exchange> exchange) {
  if (closed_) return Error(ErrorKind::closed, "the gateway is shutting down");
  const Result<void> room = check_limits(*exchange->request().principal);
  if (!room) return room.error();
  Subscriber subscriber;
  subscriber.principal = exchange->request().principal;
  subscriber.stream = EventStream::start(std::move(exchange));
  const Position position = subscribers_.insert(subscribers_.end(), std::move(subscriber));
  const std::shared_ptr<EventStream> stream = position->stream;
  stream->when_closed([weak = weak_from_this(), position] {
    if (const auto self = weak.lock()) self->subscribers_.erase(position);
  });
  if (!stream->is_open()) return Error(ErrorKind::closed, "the client has disconnected");
  return position;
}

Result<void> EventHub::stream(std::shared_ptr<http::Exchange> exchange, std::string_view last_id) {
  const Result<Position> position = add(std::move(exchange));
  if (!position) return position.error();
  (*position)->wants_events = true;
  const Subscriber subscriber = **position;
  replay(subscriber, last_id);
  return {};
}

void EventHub::replay(const Subscriber& subscriber, std::string_view last_id) {
  if (last_id.empty()) return;
  const std::optional<std::uint64_t> last = number_in(last_id, epoch_);
  const std::uint64_t first_kept = kept_.empty() ? last_number_ + 1 : kept_.front().number;
  if (!last || *last + 1 < first_kept || *last > last_number_)
    return subscriber.stream->send("reset", json::Raw::trusted(Bytes::constant("{}"), true),
                                   epoch_ + "." + std::to_string(last_number_));
  for (const Kept& event : kept_) {
    if (event.number > *last && event.visible(*subscriber.principal)) subscriber.stream->send(event.event);
  }
}

Result<std::shared_ptr<EventStream>> EventHub::open(std::shared_ptr<http::Exchange> exchange) {
  const Result<Position> position = add(std::move(exchange));
  if (!position) return position.error();
  return (*position)->stream;
}

void EventHub::end_streams(const PrincipalSelector& selected) {
  std::vector<std::shared_ptr<EventStream>> ended;
  for (const Subscriber& subscriber : subscribers_) {
    if (selected(*subscriber.principal)) ended.push_back(subscriber.stream);
  }
  for (const auto& stream : ended) stream->finish();
}

void EventHub::close() {
  closed_ = true;
  end_streams([](const Principal&) { return true; });
}

}  // namespace fairlead::admin
