// What only the legacy era has: sessions, the stream beside the requests, and the HTTP+SSE pair.
#include <utility>

#include "fairlead/json/view.hpp"
#include "fairlead/rpc/rope.hpp"
#include "transport/streamable_connection.hpp"

namespace fairlead::transport {

namespace {

// How long the rest waits for a stream to open: a server may keep its head back until there is something to
// say.
constexpr std::chrono::milliseconds kOpenTimeout{2'000};
constexpr std::chrono::milliseconds kPairTimeout{10'000};
constexpr std::chrono::milliseconds kGoodbyeTimeout{2'000};

bool is_stream(const http::Incoming& incoming) {
  return incoming.status() == 200 && incoming.media_type() == "text/event-stream";
}

}  // namespace

Task<StreamableConnection::Answered> StreamableConnection::get(std::string last_event_id,
                                                               std::shared_ptr<http::Interrupt> interrupt) {
  http::Outgoing request("GET", url_);
  request.headers = state_.session_headers();
  request.headers.add("Accept", "text/event-stream");
  request.headers.add("Cache-Control", "no-store");
  if (!last_event_id.empty()) request.headers.add("Last-Event-ID", last_event_id);
  Task<Answered> asking = client_->ask(std::move(request), interrupt);
  Answered answer = co_await asking;
  co_return answer;
}

// ---- the stream beside the requests ----------------------------------------------------------------------

// Waits until it is open, or will not be: what the server asks there at once must not be lost.
Task<void> StreamableConnection::open_stream() {
  if (reason()) co_return;
  if (stream_) stream_->interrupt->raise();
  stream_ = std::make_shared<Stream>(loop());
  const StreamPtr stream = stream_;
  loop().spawn(keep_stream(self(), stream));
  const Clock::duration limit = kOpenTimeout;
  const bool opened = co_await stream->opened.wait(loop(), limit);
  if (!opened) log_.debug("the server's stream takes long to open", {{"connection", description()}});
}

Task<void> StreamableConnection::keep_stream(std::shared_ptr<StreamableConnection> self, StreamPtr stream) {
  const std::size_t most = self->reconnect_.max_resumptions;
  Resume at;
  for (std::size_t attempt = 0; attempt <= most; ++attempt) {
    Task<Answered> getting = self->get(at.last_event_id, stream->interrupt);
    const Answered incoming = co_await getting;
    if (stream->interrupt->raised()) break;
    const bool refused = incoming && !is_stream(**incoming) && (*incoming)->status() < 500;
    if (refused) {  // 405 and 404: the server has none
      self->log_.debug("the server has no stream of its own",
                       {{"connection", self->description()}, {"status", (*incoming)->status()}});
      break;
    }
    if (incoming && is_stream(**incoming)) {
      stream->opened.set();
      at.events = 0;
      Task<Result<void>> reading = self->read_events(*incoming, stream->interrupt, at, nullptr, stream.get());
      const Result<void> ended = co_await reading;
      if (stream->interrupt->raised()) break;
      if (at.events > 0) attempt = 0;
      if (!ended && ended.error().kind() == ErrorKind::frame_too_large) {
        self->log_.warning("the server's stream is given up",
                           {{"connection", self->description()}, {"problem", ended.error().message()}});
        break;
      }
    }
    Task<bool> pausing = stream->interrupt->sleep(self->pause_before(at, attempt));
    const bool go_on = co_await pausing;
    if (!go_on) break;
  }
  stream->opened.set();
}

// ---- sessions --------------------------------------------------------------------------------------------

// The server has lost the session: begins a new one. One caller does so; the others wait for it.
Task<Result<void>> StreamableConnection::renew_session() {
  if (renewed_) {
    const std::shared_ptr<Event> renewed = renewed_;
    const Clock::duration for_ever = Clock::duration::max();
    const bool set = co_await renewed->wait(loop(), for_ever);
    static_cast<void>(set);
  } else {
    renewed_ = std::make_shared<Event>();
    renewal_failed_.reset();
    log_.info("the server has lost the session; a new one is begun", {{"connection", description()}});
    try {
      Task<Result<void>> beginning = begin_again();
      const Result<void> begun = co_await beginning;
      if (!begun) renewal_failed_ = begun.error();
    } catch (const std::bad_alloc&) {
      renewal_failed_ = Error(ErrorKind::resource_exhausted, "resource exhausted: out of memory");
    }
    if (!renewal_failed_) {
      lost_revision_.reset();
      ++generation_;
    }
    std::exchange(renewed_, nullptr)->set();
  }
  if (renewal_failed_) {
    co_return Error(renewal_failed_->kind(),
                    "the session was lost and cannot be begun again: " + renewal_failed_->message());
  }
  co_return Result<void>();
}

Task<Result<void>> StreamableConnection::begin_again() {
  if (!state_.handshake()) co_return Error(ErrorKind::closed, "there was no handshake");
  const std::string id = "\"fairlead-again-" + std::to_string(++internal_ids_) + "\"";
  const rpc::Message original = *state_.handshake();
  const Bytes frame = rpc::with_id(original, id).joined();
  auto handshake = std::make_shared<Post>(loop(), rpc::Message::parse(frame), false);
  handshake->internal = true;
  state_.forget_session();
  posts_.insert(handshake);
  calls_[handshake->id] = handshake;
  Task<Result<void>> shaking = perform(handshake);
  const Result<void> shaken = co_await shaking;
  posts_.erase(handshake);
  calls_.erase(handshake->id);
  if (!shaken) co_return shaken.error();
  if (!handshake->answer) co_return Error(ErrorKind::closed, "the handshake was not answered");
  if (handshake->answer->is(rpc::Kind::error)) co_return handshake->answer->remote_error();
  if (state_.revision() != *lost_revision_) {
    co_return Error(ErrorKind::connection_failed,
                    "the server now speaks another revision than " + *lost_revision_);
  }
  const Bytes initialized = rpc::make_notification("notifications/initialized", json::Raw()).joined();
  auto confirmation = std::make_shared<Post>(loop(), rpc::Message::parse(initialized), false);
  confirmation->internal = true;
  posts_.insert(confirmation);
  Task<Result<void>> confirming = perform(confirmation);
  Result<void> confirmed = co_await confirming;
  posts_.erase(confirmation);
  co_return confirmed;
}

Task<void> StreamableConnection::say_goodbye(std::shared_ptr<StreamableConnection> self) {
  http::Outgoing request("DELETE", self->url_);
  request.headers = self->state_.session_headers();
  request.response_timeout = kGoodbyeTimeout;
  auto interrupt = std::make_shared<http::Interrupt>(self->loop());
  Timer limit(self->loop());
  limit.arm_after(kGoodbyeTimeout, [interrupt] { interrupt->raise(); });
  Task<Answered> asking = self->client_->ask(std::move(request), interrupt);
  const Answered answer = co_await asking;
  if (!answer)
    self->log_.debug("the session could not be ended",
                     {{"connection", self->description()}, {"problem", answer.error().message()}});
  self->client_->close();
  self->settled_.set();
}

Task<void> StreamableConnection::settled() {
  const auto keep = self();
  if (!closed()) co_return;
  const Clock::duration limit = 2 * kGoodbyeTimeout;
  const bool done = co_await settled_.wait(loop(), limit);
  static_cast<void>(done);
}

// ---- the HTTP+SSE pair -----------------------------------------------------------------------------------

// A server of 2024-11-05 has one stream for all it says, whose first event tells where to post.
Task<Result<void>> StreamableConnection::open_pair() {
  if (stream_) stream_->interrupt->raise();
  stream_ = std::make_shared<Stream>(loop());
  const StreamPtr stream = stream_;
  stream->on_event = [this, raw = stream.get()](const http::SseEvent& event) {
    if (event.type != "endpoint" || pair_) return;
    Result<http::Url> endpoint = url_.resolve(event.data);
    if (endpoint && endpoint->same_origin(url_)) {
      pair_ = std::move(*endpoint);
    } else {
      raw->refused =
          Error(ErrorKind::connection_failed,
                "the server wants its messages posted to another origin: " + event.data.substr(0, 200));
    }
    raw->opened.set();
  };
  loop().spawn(keep_pair(self(), stream));
  const Clock::duration limit = kPairTimeout;
  const bool opened = co_await stream->opened.wait(loop(), limit);
  if (pair_) co_return Result<void>();
  stream->interrupt->raise();
  if (stream->refused) co_return *stream->refused;
  static_cast<void>(opened);
  co_return Error(ErrorKind::connection_failed, description() + " has no HTTP+SSE stream");
}

Task<void> StreamableConnection::keep_pair(std::shared_ptr<StreamableConnection> self, StreamPtr stream) {
  Task<Answered> getting = self->get(std::string(), stream->interrupt);
  const Answered incoming = co_await getting;
  Result<void> ended;
  if (incoming && is_stream(**incoming)) {
    Resume at;
    Task<Result<void>> reading = self->read_events(*incoming, stream->interrupt, at, nullptr, stream.get());
    ended = co_await reading;
  }
  stream->opened.set();
  if (!self->pair_ || stream->interrupt->raised()) co_return;
  self->fail(Error(ErrorKind::closed, self->description() + " closed the stream of its messages" +
                                          (ended ? std::string() : ": " + ended.error().message())));
}

}  // namespace fairlead::transport
