// StreamableConnection: messages from the server, and the resumption of interrupted event streams.
#include <algorithm>

#include "fairlead/rpc/rope.hpp"
#include "peer/parse_in_steps.hpp"
#include "transport/streamable_connection.hpp"

namespace fairlead::transport {

namespace {

constexpr std::chrono::milliseconds kInitialReconnectDelay{1'000};
constexpr std::chrono::milliseconds kMaxReconnectDelay{30'000};
constexpr std::chrono::milliseconds kMinDelayAfterBurst{1'000};
constexpr std::chrono::minutes kBurstWindow{1};
// Events that are handled per turn of the loop.
constexpr std::size_t kEventsPerTurn = 256;
// How long the server may keep the stream of a request open after the response. If the stream ends in this
// time, its HTTP connection can be reused.
constexpr std::chrono::milliseconds kCloseTimeoutAfterResponse{1'000};

bool is_response(const rpc::Message& message) {
  return message.is(rpc::Kind::response) || message.is(rpc::Kind::error);
}

}  // namespace

// ---- messages ------------------------------------------------------------------------------------------

void StreamableConnection::handle_message(rpc::Message&& message, Post* post) {
  if (message.is(rpc::Kind::batch)) {
    for (const rpc::Message& element : message.batch()) handle_message(rpc::Message(element), post);
  } else if (is_response(message)) {
    handle_response(std::move(message), post);
  } else if (message.is(rpc::Kind::request) && (post ? post->modern : state_.modern())) {
    log_.warning("request from a server of the modern era is dropped",
                 {{"connection", description()}, {"method", std::string(message.method())}});
  } else {
    deliver(std::move(message));
  }
}

rpc::Message StreamableConnection::error_with_id(const rpc::Message& error, std::string_view id) {
  const Error reason = error.remote_error();
  const ErrorDetail& detail = reason.detail();
  return rpc::Message::parse(
      rpc::make_error(id, detail.rpc_code.value_or(0), reason.message(), detail.rpc_data).joined());
}

// Handles a response from the server. An error without an id on the stream of a request is the response to
// that request.
void StreamableConnection::handle_response(rpc::Message&& message, Post* post) {
  if (post && !post->response_received && message.is(rpc::Kind::error) && message.id() != post->id &&
      (message.id().empty() || message.id() == "null")) {
    return handle_response(error_with_id(message, post->id), post);
  }
  const PostPtr call = pending_call(message.id(), post);
  if (!call) return deliver(std::move(message));
  remove_call(*call);
  call->response_received = true;
  state_.on_response(call->message, message);
  if (call->internal) {
    call->response = std::move(message);
  } else {
    deliver(std::move(message));
  }
}

StreamableConnection::PostPtr StreamableConnection::pending_call(std::string_view id,
                                                                 const Post* post) const {
  if (post && post->is_pending && post->id == id) return posts_[post->index];
  const auto found = calls_.find(id);
  return found == calls_.end() ? nullptr : found->second;
}

void StreamableConnection::request_input() {
  if (paused_readers_.empty()) return;
  // The readers are woken in a later callback, because this is called while the receiver is being suspended.
  loop().post([self = self()] {
    for (const auto& waiter : std::exchange(self->paused_readers_, {})) waiter->wake();
  });
}

Task<void> StreamableConnection::wait_for_receiver(std::shared_ptr<http::CancellableWaiter> waiter) {
  while (!inbox_empty() && !waiter->cancelled()) {
    waiter->clear_wake();
    paused_readers_.push_back(waiter);
    const Clock::time_point no_deadline = Clock::time_point::max();
    static_cast<void>(co_await waiter->wait(no_deadline));
  }
}

// ---- streams -------------------------------------------------------------------------------------------

void StreamableConnection::handle_event_message(rpc::Message&& message, Post* post) {
  if (message.is(rpc::Kind::malformed)) {
    deliver(std::move(message));
  } else {
    handle_message(std::move(message), post);
  }
}

Task<Result<void>> StreamableConnection::read_events(std::shared_ptr<http::ClientResponse> response,
                                                     std::shared_ptr<http::CancellableWaiter> waiter,
                                                     ResumePoint& point, Post* post, ServerStream* stream) {
  const Limits& limits = client_->options().limits;
  http::SseParser parser(limits.max_frame_bytes);
  while (true) {
    const Result<Bytes> piece = co_await response->read();
    if (!piece) co_return piece.error();
    if (piece->empty()) co_return Result<void>();
    std::vector<http::SseEvent> events;
    const Result<void> fed =
        parser.feed(piece->view(), [&events](http::SseEvent event) { events.push_back(std::move(event)); });
    if (!parser.last_event_id().empty()) point.last_event_id = parser.last_event_id();
    if (parser.retry()) point.retry = parser.retry();
    point.event_count = parser.event_count();
    for (std::size_t i = 0; i < events.size(); ++i) {
      const bool is_message = events[i].type.empty() || events[i].type == "message";
      if (!is_message && stream && stream->on_other_event) stream->on_other_event(events[i]);
      const Bytes data = Bytes::adopt(std::move(events[i].data));
      if (is_message && is_large_frame(data)) {
        rpc::Message message = co_await parse_in_steps(loop(), data, limits);
        if (waiter->cancelled()) co_return waiter->cancelled_error();
        handle_event_message(std::move(message), post);
      } else if (is_message) {
        handle_event_message(rpc::Message::parse(data, limits), post);
      }
      if ((i + 1) % kEventsPerTurn != 0) continue;
      wake_receiver();
      co_await waiter->yield();
      if (waiter->cancelled()) co_return waiter->cancelled_error();
    }
    if (!fed) co_return fed.error();
    wake_receiver();
    if (post && post->response_received) response->set_deadline(Clock::now() + kCloseTimeoutAfterResponse);
    co_await wait_for_receiver(waiter);
  }
}

// Reads the response to a request from an event stream. In the legacy era a stream that ends before the
// response can be resumed after its last event; a server may end a stream early on purpose. In the modern era
// a stream cannot be resumed, so the request fails.
Task<Result<void>> StreamableConnection::read_response_events(
    PostPtr post, std::shared_ptr<http::ClientResponse> response) {
  ResumePoint point;
  const Result<void> ended = co_await read_events(response, post, point, post.get(), nullptr);
  if (post->response_received) co_return Result<void>();
  if (post->cancelled()) co_return post->cancelled_error();
  response.reset();
  if (!ended && ended.error().kind() != ErrorKind::closed && ended.error().kind() != ErrorKind::io)
    co_return ended.error();
  if (post->modern || point.last_event_id.empty()) {
    co_return Error(ErrorKind::closed, "the stream of " + description() + " ended before the response");
  }
  Result<void> resumed = co_await resume_response_stream(post, point);
  co_return resumed;
}

// The delay is what the server requested, at least the minimum of ReconnectLimits, and longer after each
// failed attempt.
Clock::duration StreamableConnection::next_reconnect_delay(ResumePoint& point, std::size_t attempt) const {
  const Clock::time_point now = Clock::now();
  if (now - point.burst_start > kBurstWindow) {
    point.burst_start = now;
    point.reconnects_in_burst = 0;
  }
  const bool in_burst = ++point.reconnects_in_burst <= reconnect_.reconnect_burst;
  const auto min_delay = in_burst ? reconnect_.min_reconnect_delay
                                  : std::max(reconnect_.min_reconnect_delay, kMinDelayAfterBurst);
  auto delay = std::max(point.retry.value_or(kInitialReconnectDelay), min_delay);
  const auto max_delay = std::max(kMaxReconnectDelay, delay);
  for (std::size_t i = 0; i < attempt && delay < max_delay; ++i) delay = std::min(max_delay, delay * 3 / 2);
  return delay;
}

Task<Result<void>> StreamableConnection::resume_response_stream(PostPtr post, ResumePoint& point) {
  const std::size_t max_attempts = reconnect_.max_resumptions;
  for (std::size_t attempt = 0; attempt < max_attempts; ++attempt) {
    const bool slept = co_await post->sleep(next_reconnect_delay(point, attempt));
    if (!slept) co_return post->cancelled_error();
    log_.debug("resuming a stream", {{"connection", description()}, {"after", point.last_event_id}});
    const ResponseResult response = co_await send_get(point.last_event_id, post);
    if (post->cancelled()) co_return post->cancelled_error();
    if (!response || (*response)->status() >= 500) continue;
    if ((*response)->status() / 100 != 2 || (*response)->media_type() != "text/event-stream")
      co_return status_error(url_, **response, "the stream of a request cannot be resumed");
    point.event_count = 0;
    const Result<void> ended = co_await read_events(*response, post, point, post.get(), nullptr);
    if (post->response_received) co_return Result<void>();
    if (post->cancelled()) co_return post->cancelled_error();
    if (!ended && ended.error().kind() == ErrorKind::frame_too_large) co_return ended.error();
    if (point.event_count > 0)
      attempt = static_cast<std::size_t>(-1);  // events have arrived, so the attempts are counted again
  }
  co_return Error(ErrorKind::closed, "the stream of " + description() +
                                         " ended before the response; max_resumptions (" +
                                         std::to_string(max_attempts) + ") reached");
}

}  // namespace fairlead::transport
