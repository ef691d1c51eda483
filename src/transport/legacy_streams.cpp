// LegacySession: its event streams, in the responses to POST and GET, and their resumption.
#include <utility>

#include "fairlead/base/block_cache.hpp"
#include "transport/legacy_session.hpp"

namespace fairlead::transport {

namespace {

constexpr std::chrono::milliseconds kStreamStartDelay{20};  // how long the head waits for the first message

}  // namespace

// ---- event streams -------------------------------------------------------------------------------------

http::Response LegacySession::event_stream_head(const ResponseStream& stream) const {
  http::Response head = http::sse::response_head();
  if (stream.is_initialize) head.headers.add(mcp::kSessionHeader, id_);
  return head;
}

// Makes the response to a POST an event stream, which begins with the responses that were collected.
void LegacySession::start_event_stream(const ResponseStreamPtr& stream) {
  stream->streaming = true;
  stream->number = ++last_stream_number_;
  streams_by_number_.emplace(stream->number, stream);
  attach_exchange(stream, std::move(stream->exchange));
  if (sends_priming_events() && stream->exchange) {
    const EventStore::EventId event_id = store_.allocate_id(stream->number);
    stream->exchange->write(http::sse::priming_event(EventStore::format_id(event_id), options_->retry));
  }
  for (const rpc::Rope& response : std::exchange(stream->responses, {})) send_event(stream, response);
}

// A client that accepts only event streams gets a stream in any case. Its head is delayed by
// kStreamStartDelay, so that a result that is ready by then leaves in the same write.
void LegacySession::start_event_streams_soon() {
  if (!stream_start_timer_) stream_start_timer_ = std::make_unique<Timer>(loop());
  if (stream_start_timer_->armed()) return;
  const std::weak_ptr<Connection> weak = weak_from_this();
  stream_start_timer_->arm_after(kStreamStartDelay, [weak] {
    if (const auto self = weak.lock()) static_cast<LegacySession&>(*self).start_event_streams();
  });
}

void LegacySession::start_event_streams() {
  std::vector<ResponseStreamPtr> streams;
  for (const auto& [id, stream] : streams_by_request_) {
    if (!stream->streaming && !responds_with_json(*stream) && !stream->is_initialize)
      streams.push_back(stream);
  }
  for (const ResponseStreamPtr& stream : streams) {
    if (!stream->streaming) start_event_stream(stream);
  }
}

// Sends the head of an event stream on `exchange`. All further events of `stream` are sent on `exchange`.
void LegacySession::attach_exchange(const ResponseStreamPtr& stream,
                                    std::shared_ptr<http::Exchange> exchange) {
  if (!exchange || exchange->disconnected()) return;
  stream->exchange = exchange;
  exchange->when_disconnected([weak = std::weak_ptr<ResponseStream>(stream), raw = exchange.get()] {
    const ResponseStreamPtr self = weak.lock();
    if (self && self->exchange.get() == raw) self->exchange = nullptr;
  });
  exchange->start(event_stream_head(*stream));
}

void LegacySession::send_event(const ResponseStreamPtr& stream, const rpc::Rope& message) {
  const EventStore::EventId event_id = store_.allocate_id(stream->number);
  http::sse::EncodedEvent event = http::sse::message_event(message, EventStore::format_id(event_id));
  store_.add(event_id, event);
  stream->idle_since_tick = false;
  const std::shared_ptr<http::Exchange> exchange = stream->exchange;  // write() may clear the member
  if (exchange) exchange->write(std::move(event));
}

// Ends a stream on which no more events will be sent. A client that has lost the connection can still resume
// it for finished_stream_grace.
void LegacySession::finish_stream(const ResponseStreamPtr& stream) {
  if (stream->number != 0) {
    streams_by_number_.erase(stream->number);
    const Clock::time_point now = Clock::now();
    store_.end_stream(stream->number, now);
    store_.drop_ended(now - options_->finished_stream_grace);
  }
  const std::shared_ptr<http::Exchange> exchange = std::move(stream->exchange);
  if (!exchange) return;
  if (!stream->streaming && stream->accepted_types.events) {
    exchange->start(http::sse::response_head());  // an empty stream, because the request was cancelled
    exchange->finish();
  } else if (!stream->streaming) {
    exchange->respond(http::Response(202));
  } else {
    exchange->finish();
  }
}

void LegacySession::close_request_stream(std::string_view request_id) {
  const auto found = streams_by_request_.find(request_id);
  if (found == streams_by_request_.end() || !sends_priming_events() || !can_stream(*found->second)) return;
  const ResponseStreamPtr stream = found->second;
  if (!stream->streaming) start_event_stream(stream);
  const std::shared_ptr<http::Exchange> exchange = std::move(stream->exchange);
  if (exchange) exchange->finish();
}

// ---- GET: the standalone stream, and resumption --------------------------------------------------------

void LegacySession::handle_get(std::shared_ptr<http::Exchange> exchange, bool draining) {
  const auto self = shared_from_this();
  last_used_ = Clock::now();
  const http::Headers& headers = exchange->request().headers;
  if (!HeaderFacts::of(exchange->request()).accepted_types.events)
    return exchange->respond(
        to_response(Refusal{406, kRefused, "Not Acceptable: Accept does not list text/event-stream"}));
  if (headers.has("Last-Event-ID")) {
    const std::optional<EventStore::EventId> last_event = EventStore::parse_id(headers.get("Last-Event-ID"));
    const auto events = last_event ? store_.events_after(*last_event) : std::nullopt;
    if (!events)
      return exchange->respond(
          to_response(Refusal{400, kRefused, "Bad Request: Last-Event-ID names no event of this session"}));
    if (draining && last_event->stream == 0) return exchange->respond(to_response(shutting_down_refusal()));
    return resume_stream(std::move(exchange), *last_event, *events);
  }
  if (draining) return exchange->respond(to_response(shutting_down_refusal()));
  if (standalone_stream_ && standalone_stream_->exchange)
    return exchange->respond(
        to_response(Refusal{409, kRefused, "Conflict: the session already has a standalone stream"}));
  open_standalone_stream(std::move(exchange));
}

void LegacySession::open_standalone_stream(std::shared_ptr<http::Exchange> exchange) {
  standalone_stream_ = make_cached<ResponseStream>();
  standalone_stream_->streaming = true;
  attach_exchange(standalone_stream_, std::move(exchange));
  if (!standalone_stream_->exchange) return;
  store_.add_stream(0);
  const EventStore::EventId last_sent{0, last_sent_standalone_event_};
  const std::vector<http::sse::EncodedEvent> unsent = store_.retained_events_after(last_sent);
  if (sends_priming_events()) {
    // The priming event precedes the events that have not been sent, so its id is that of the last sent
    // event.
    standalone_stream_->exchange->write(
        http::sse::priming_event(EventStore::format_id(last_sent), options_->retry));
  }
  last_sent_standalone_event_ = store_.last_event_number(0);
  replay(standalone_stream_, unsent);
}

void LegacySession::resume_stream(std::shared_ptr<http::Exchange> exchange, EventStore::EventId last_event,
                                  const std::vector<http::sse::EncodedEvent>& events) {
  ResponseStreamPtr stream = standalone_stream_;
  if (last_event.stream != 0) {
    const auto found = streams_by_number_.find(last_event.stream);
    stream = found == streams_by_number_.end() ? nullptr : found->second;
  } else {
    last_sent_standalone_event_ = store_.last_event_number(0);
  }
  const bool finished = stream == nullptr && last_event.stream != 0;
  if (!stream) {
    stream = make_cached<ResponseStream>();
    stream->streaming = true;
    if (last_event.stream == 0) standalone_stream_ = stream;
  }
  // The client resumes the stream, so its previous connection is lost, even if the server has not detected
  // that yet.
  if (const std::shared_ptr<http::Exchange> previous = std::move(stream->exchange)) previous->finish();
  attach_exchange(stream, std::move(exchange));
  replay(stream, events);
  if (finished) finish_stream(stream);
}

void LegacySession::replay(const ResponseStreamPtr& stream,
                           const std::vector<http::sse::EncodedEvent>& events) {
  for (const http::sse::EncodedEvent& event : events) {
    const std::shared_ptr<http::Exchange> exchange = stream->exchange;
    if (exchange) exchange->write(event);
  }
}

void LegacySession::end_standalone_stream() {
  if (!standalone_stream_) return;
  if (const std::shared_ptr<http::Exchange> exchange = std::move(standalone_stream_->exchange))
    exchange->finish();
}

}  // namespace fairlead::transport
