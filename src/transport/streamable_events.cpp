// What comes in on a StreamableConnection: messages, streams of them, and taking up a stream that was cut.
#include <algorithm>

#include "fairlead/rpc/rope.hpp"
#include "peer/parse_in_steps.hpp"
#include "transport/streamable_connection.hpp"

namespace fairlead::transport {

namespace {

constexpr std::chrono::milliseconds kFirstPause{1'000};
constexpr std::chrono::milliseconds kLongestPause{30'000};
constexpr std::chrono::milliseconds kPauseAfterBurst{1'000};
constexpr std::chrono::minutes kBurstWindow{1};
// Events that are handled before the other callbacks of the loop run.
constexpr std::size_t kEventsPerTurn = 256;
// How long a stream may stay open behind its answer, so that its connection can be used again.
constexpr std::chrono::milliseconds kAfterAnswer{1'000};

bool is_answer(const rpc::Message& message) {
  return message.is(rpc::Kind::response) || message.is(rpc::Kind::error);
}

}  // namespace

// ---- messages --------------------------------------------------------------------------------------------

void StreamableConnection::on_message(const rpc::Message& message, Post* post) {
  if (message.is(rpc::Kind::batch)) {
    for (const rpc::Message& one : message.batch()) on_message(one, post);
  } else if (is_answer(message)) {
    on_answer(message, post);
  } else if (message.is(rpc::Kind::request) && (post ? post->modern : state_.modern())) {
    log_.warning("a request on a stream of the modern era is dropped",
                 {{"connection", description()}, {"method", std::string(message.method())}});
  } else {
    deliver(message);
  }
}

rpc::Message StreamableConnection::with_id(const rpc::Message& error, std::string_view id) {
  const Error reason = error.remote_error();
  const ErrorDetail& detail = reason.detail();
  return rpc::Message::parse(
      rpc::make_error(id, detail.rpc_code.value_or(0), reason.message(), detail.rpc_data).joined());
}

// An error without an id, on the stream of a request, is about that request.
void StreamableConnection::on_answer(const rpc::Message& message, Post* post) {
  if (post && !post->answered && message.is(rpc::Kind::error) && message.id() != post->id &&
      (message.id().empty() || message.id() == "null")) {
    return on_answer(with_id(message, post->id), post);
  }
  const auto found = calls_.find(message.id());
  if (found == calls_.end()) return deliver(message);
  const PostPtr call = found->second;
  calls_.erase(found);
  call->answered = true;
  state_.answered(call->message, message);
  if (call->internal) {
    call->answer = message;
  } else {
    deliver(message);
  }
}

void StreamableConnection::want_input() {
  if (paused_.empty()) return;
  // From the loop: this is called from within the receiver's own suspension.
  loop().post([self = self()] {
    for (const auto& interrupt : std::exchange(self->paused_, {})) interrupt->wake();
  });
}

Task<void> StreamableConnection::wait_for_room(std::shared_ptr<http::Interrupt> interrupt) {
  while (!inbox_empty() && !interrupt->raised()) {
    interrupt->prepare();
    paused_.push_back(interrupt);
    const Clock::time_point for_ever = Clock::time_point::max();
    const bool woken = co_await interrupt->wait(for_ever);
    static_cast<void>(woken);
  }
}

// ---- streams ---------------------------------------------------------------------------------------------

void StreamableConnection::take_event(const rpc::Message& message, Post* post) {
  if (message.is(rpc::Kind::malformed)) {
    deliver(message);
  } else {
    on_message(message, post);
  }
}

Task<Result<void>> StreamableConnection::read_events(std::shared_ptr<http::Incoming> incoming,
                                                     std::shared_ptr<http::Interrupt> interrupt, Resume& at,
                                                     Post* post, Stream* stream) {
  const Limits& limits = client_->options().limits;
  http::SseParser parser(limits.max_frame_bytes);
  while (true) {
    Task<Result<Bytes>> reading = incoming->read();
    const Result<Bytes> piece = co_await reading;
    if (!piece) co_return piece.error();
    if (piece->empty()) co_return Result<void>();
    std::vector<http::SseEvent> events;
    const Result<void> fed =
        parser.feed(piece->view(), [&events](http::SseEvent event) { events.push_back(std::move(event)); });
    if (!parser.last_event_id().empty()) at.last_event_id = parser.last_event_id();
    if (parser.retry()) at.retry = parser.retry();
    at.events = parser.events();
    for (std::size_t i = 0; i < events.size(); ++i) {
      const bool is_message = events[i].type.empty() || events[i].type == "message";
      if (!is_message && stream && stream->on_event) stream->on_event(events[i]);
      const Bytes data = Bytes::adopt(std::move(events[i].data));
      if (is_message && is_large_frame(data)) {
        Task<rpc::Message> parsing = parse_in_steps(loop(), data, limits);
        const rpc::Message message = co_await parsing;
        if (interrupt->raised()) co_return interrupt->error();
        take_event(message, post);
      } else if (is_message) {
        take_event(rpc::Message::parse(data, limits), post);
      }
      if ((i + 1) % kEventsPerTurn != 0) continue;
      wake_receiver();
      Task<void> yielding = interrupt->yield();
      co_await yielding;
      if (interrupt->raised()) co_return interrupt->error();
    }
    if (!fed) co_return fed.error();
    wake_receiver();
    if (post && post->answered) incoming->set_deadline(Clock::now() + kAfterAnswer);
    Task<void> waiting = wait_for_room(interrupt);
    co_await waiting;
  }
}

// The answer to a request comes as events. In the legacy era a stream that ends early can be taken up where
// it was cut, and a server may well mean that; in the modern era the request is lost with its stream.
Task<Result<void>> StreamableConnection::take_events(PostPtr post, std::shared_ptr<http::Incoming> incoming) {
  Resume at;
  Task<Result<void>> reading = read_events(incoming, post->interrupt, at, post.get(), nullptr);
  const Result<void> ended = co_await reading;
  if (post->answered) co_return Result<void>();
  if (post->interrupt->raised()) co_return post->interrupt->error();
  incoming.reset();
  if (!ended && ended.error().kind() != ErrorKind::closed && ended.error().kind() != ErrorKind::io)
    co_return ended.error();
  if (post->modern || at.last_event_id.empty()) {
    co_return Error(ErrorKind::closed, "the stream of " + description() + " ended before the answer");
  }
  Task<Result<void>> resuming = resume(post, at);
  Result<void> resumed = co_await resuming;
  co_return resumed;
}

Clock::duration StreamableConnection::pause_before(Resume& at, std::size_t attempt) const {
  const Clock::time_point now = Clock::now();
  if (now - at.burst_began > kBurstWindow) {
    at.burst_began = now;
    at.reconnects = 0;
  }
  const bool in_burst = ++at.reconnects <= reconnect_.reconnect_burst;
  const auto shortest =
      in_burst ? reconnect_.min_reconnect_delay : std::max(reconnect_.min_reconnect_delay, kPauseAfterBurst);
  auto pause = std::max(at.retry.value_or(kFirstPause), shortest);
  const auto longest = std::max(kLongestPause, pause);
  for (std::size_t i = 0; i < attempt && pause < longest; ++i) pause = std::min(longest, pause * 3 / 2);
  return pause;
}

Task<Result<void>> StreamableConnection::resume(PostPtr post, Resume& at) {
  const std::size_t most = reconnect_.max_resumptions;
  for (std::size_t attempt = 0; attempt < most; ++attempt) {
    Task<bool> pausing = post->interrupt->sleep(pause_before(at, attempt));
    const bool go_on = co_await pausing;
    if (!go_on) co_return post->interrupt->error();
    log_.debug("a stream is resumed", {{"connection", description()}, {"after", at.last_event_id}});
    Task<Answered> getting = get(at.last_event_id, post->interrupt);
    const Answered incoming = co_await getting;
    if (post->interrupt->raised()) co_return post->interrupt->error();
    if (!incoming || (*incoming)->status() >= 500) continue;
    if ((*incoming)->status() / 100 != 2 || (*incoming)->media_type() != "text/event-stream")
      co_return status_error(url_, **incoming, "the stream of a request cannot be resumed");
    at.events = 0;
    Task<Result<void>> reading = read_events(*incoming, post->interrupt, at, post.get(), nullptr);
    const Result<void> ended = co_await reading;
    if (post->answered) co_return Result<void>();
    if (post->interrupt->raised()) co_return post->interrupt->error();
    if (!ended && ended.error().kind() == ErrorKind::frame_too_large) co_return ended.error();
    if (at.events > 0) attempt = static_cast<std::size_t>(-1);  // there is progress: count anew
  }
  co_return Error(ErrorKind::closed, "the stream of " + description() +
                                         " ended before the answer; max_resumptions (" +
                                         std::to_string(most) + ") did not bring it back");
}

}  // namespace fairlead::transport
