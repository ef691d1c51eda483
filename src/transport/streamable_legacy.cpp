// StreamableConnection: sessions and the standalone stream of the legacy era, and the HTTP+SSE transport.
#include <utility>

#include "fairlead/json/view.hpp"
#include "fairlead/rpc/rope.hpp"
#include "transport/streamable_connection.hpp"

namespace fairlead::transport {

namespace {

// How long other messages wait until the standalone stream is open. It is short, because a server may send
// the head of the response only with the first event.
constexpr std::chrono::milliseconds kStandaloneOpenTimeout{2'000};
constexpr std::chrono::milliseconds kHttpSseOpenTimeout{10'000};
constexpr std::chrono::milliseconds kDeleteTimeout{2'000};

bool is_event_stream(const http::ClientResponse& response) {
  return response.status() == 200 && response.media_type() == "text/event-stream";
}

}  // namespace

Task<StreamableConnection::ResponseResult> StreamableConnection::send_get(
    std::string last_event_id, std::shared_ptr<http::CancellableWaiter> waiter) {
  http::ClientRequest request("GET", url_);
  request.headers = state_.session_headers();
  request.headers.add("Accept", "text/event-stream");
  request.headers.add("Cache-Control", "no-store");
  if (!last_event_id.empty()) request.headers.add("Last-Event-ID", last_event_id);
  ResponseResult response = co_await client_->send(std::move(request), waiter);
  co_return response;
}

// ---- the standalone stream -----------------------------------------------------------------------------

// Opens the standalone stream, and waits until it is open or has failed. Other messages are sent only
// afterwards, so that no request that the server sends on this stream in reaction to them is lost.
Task<void> StreamableConnection::open_standalone_stream() {
  if (close_reason()) co_return;
  if (server_stream_) server_stream_->waiter->cancel();
  server_stream_ = std::make_shared<ServerStream>(loop());
  const ServerStreamPtr stream = server_stream_;
  loop().spawn(run_standalone_stream(self(), stream));
  const Clock::duration limit = kStandaloneOpenTimeout;
  const bool opened = co_await stream->opened.wait(loop(), limit);
  if (!opened) log_.debug("the standalone stream is slow to open", {{"connection", description()}});
}

Task<void> StreamableConnection::run_standalone_stream(std::shared_ptr<StreamableConnection> self,
                                                       ServerStreamPtr stream) {
  const std::size_t max_attempts = self->reconnect_.max_resumptions;
  ResumePoint point;
  const bool keep = self->reconnect_.keep_server_stream;
  for (std::size_t attempt = 0; keep || attempt <= max_attempts; ++attempt) {
    const ResponseResult response = co_await self->send_get(point.last_event_id, stream->waiter);
    if (stream->waiter->cancelled()) break;
    if (keep && response && (*response)->status() == 404 && !self->state_.session_id().empty()) {
      self->note_session_loss();
      co_await self->renew_until_cancelled(stream->waiter);
      break;  // the new session has a stream of its own
    }
    const bool refused = response && !is_event_stream(**response) && (*response)->status() < 500;
    if (refused) {  // 405 or 404: the server does not support the standalone stream
      self->log_.debug("the server has no standalone stream",
                       {{"connection", self->description()}, {"status", (*response)->status()}});
      break;
    }
    if (response && is_event_stream(**response)) {
      stream->opened.set();
      point.event_count = 0;
      const Result<void> ended =
          co_await self->read_events(*response, stream->waiter, point, nullptr, stream.get());
      if (stream->waiter->cancelled()) break;
      if (point.event_count > 0) attempt = 0;
      if (!ended && ended.error().kind() == ErrorKind::frame_too_large) {
        self->log_.warning("standalone stream abandoned",
                           {{"connection", self->description()}, {"problem", ended.error().message()}});
        break;
      }
    }
    const bool slept = co_await stream->waiter->sleep(self->next_reconnect_delay(point, attempt));
    if (!slept) break;
  }
  stream->opened.set();
}

Task<void> StreamableConnection::renew_until_cancelled(std::shared_ptr<http::CancellableWaiter> waiter) {
  ResumePoint point;
  for (std::size_t attempt = 0; lost_session_revision_ && !waiter->cancelled(); ++attempt) {
    const Result<void> renewed = co_await renew_session();
    if (renewed || waiter->cancelled()) co_return;
    log_.debug("session not renewed",
               {{"connection", description()}, {"problem", renewed.error().message()}});
    static_cast<void>(co_await waiter->sleep(next_reconnect_delay(point, attempt)));
  }
}

// ---- sessions ------------------------------------------------------------------------------------------

void StreamableConnection::note_session_loss() {
  if (!lost_session_revision_) lost_session_revision_ = state_.negotiated_revision();
}

// Starts a new session after the server has lost the old one. The first caller does so; callers that arrive
// during the renewal wait for its result.
Task<Result<void>> StreamableConnection::renew_session() {
  if (renewal_done_) {
    const std::shared_ptr<Event> renewed = renewal_done_;
    const Clock::duration no_deadline = Clock::duration::max();
    static_cast<void>(co_await renewed->wait(loop(), no_deadline));
  } else {
    renewal_done_ = std::make_shared<Event>();
    renewal_error_.reset();
    log_.info("the server has lost the session; starting a new one", {{"connection", description()}});
    try {
      const Result<void> reinitialized = co_await reinitialize();
      if (!reinitialized) renewal_error_ = reinitialized.error();
    } catch (const std::bad_alloc&) {
      renewal_error_ = Error(ErrorKind::resource_exhausted, "resource exhausted: out of memory");
    }
    if (!renewal_error_) {
      lost_session_revision_.reset();
      ++session_generation_;
    }
    std::exchange(renewal_done_, nullptr)->set();
    if (!renewal_error_ && reconnect_.on_session_renewed) reconnect_.on_session_renewed();
  }
  if (renewal_error_) {
    co_return Error(renewal_error_->kind(),
                    "the session was lost and cannot be renewed: " + renewal_error_->message());
  }
  co_return Result<void>();
}

Task<Result<void>> StreamableConnection::reinitialize() {
  if (!state_.handshake()) co_return Error(ErrorKind::closed, "no handshake has been sent");
  const std::string id = "\"fairlead-again-" + std::to_string(++last_internal_id_) + "\"";
  const rpc::Message original = *state_.handshake();
  const Bytes frame = rpc::with_id(original, id).joined();
  auto handshake = std::make_shared<Post>(*this, rpc::Message::parse(frame), false);
  handshake->internal = true;
  state_.clear_session();
  add_post(handshake);
  add_call(handshake);
  const Result<void> handshake_outcome = co_await send_and_handle(handshake);
  remove_post(*handshake);
  remove_call(*handshake);
  if (!handshake_outcome) co_return handshake_outcome.error();
  if (!handshake->response) co_return Error(ErrorKind::closed, "no response to the handshake");
  if (handshake->response->is(rpc::Kind::error)) co_return handshake->response->remote_error();
  if (state_.negotiated_revision() != *lost_session_revision_) {
    co_return Error(ErrorKind::connection_failed,
                    "the server negotiated another revision than " + *lost_session_revision_);
  }
  const Bytes initialized = rpc::make_notification("notifications/initialized", json::Raw()).joined();
  auto confirmation = std::make_shared<Post>(*this, rpc::Message::parse(initialized), false);
  confirmation->internal = true;
  add_post(confirmation);
  Result<void> confirmed = co_await send_and_handle(confirmation);
  remove_post(*confirmation);
  co_return confirmed;
}

Task<void> StreamableConnection::delete_session(std::shared_ptr<StreamableConnection> self) {
  http::ClientRequest request("DELETE", self->url_);
  request.headers = self->state_.session_headers();
  request.response_timeout = kDeleteTimeout;
  auto waiter = std::make_shared<http::CancellableWaiter>(self->loop());
  Timer limit(self->loop());
  limit.arm_after(kDeleteTimeout, [waiter] { waiter->cancel(); });
  const ResponseResult response = co_await self->client_->send(std::move(request), waiter);
  if (!response)
    self->log_.debug("DELETE of the session failed",
                     {{"connection", self->description()}, {"problem", response.error().message()}});
  self->client_->close();
  self->released_.set();
}

Task<void> StreamableConnection::wait_closed() {
  const auto keep = self();
  if (!closed()) co_return;
  const Clock::duration limit = 2 * kDeleteTimeout;
  static_cast<void>(co_await released_.wait(loop(), limit));
}

// ---- HTTP+SSE ------------------------------------------------------------------------------------------

// A server of revision 2024-11-05 sends all messages on one stream, whose first event names the URL for
// POSTs.
Task<Result<void>> StreamableConnection::fall_back_to_http_sse() {
  if (server_stream_) server_stream_->waiter->cancel();
  server_stream_ = std::make_shared<ServerStream>(loop());
  const ServerStreamPtr stream = server_stream_;
  stream->on_other_event = [this, raw = stream.get()](const http::SseEvent& event) {
    if (event.type != "endpoint" || http_sse_post_url_) return;
    Result<http::Url> endpoint = url_.resolve(event.data);
    if (endpoint && endpoint->same_origin(url_)) {
      http_sse_post_url_ = std::move(*endpoint);
    } else {
      raw->endpoint_error = Error(ErrorKind::connection_failed,
                                  "the endpoint event names another origin: " + event.data.substr(0, 200));
    }
    raw->opened.set();
  };
  loop().spawn(run_http_sse_stream(self(), stream));
  const Clock::duration limit = kHttpSseOpenTimeout;
  const bool opened = co_await stream->opened.wait(loop(), limit);
  if (http_sse_post_url_) co_return Result<void>();
  stream->waiter->cancel();
  if (stream->endpoint_error) co_return *stream->endpoint_error;
  static_cast<void>(opened);
  co_return Error(ErrorKind::connection_failed, description() + " has no HTTP+SSE stream");
}

Task<void> StreamableConnection::run_http_sse_stream(std::shared_ptr<StreamableConnection> self,
                                                     ServerStreamPtr stream) {
  const ResponseResult response = co_await self->send_get(std::string(), stream->waiter);
  Result<void> ended;
  if (response && is_event_stream(**response)) {
    ResumePoint point;
    ended = co_await self->read_events(*response, stream->waiter, point, nullptr, stream.get());
  }
  stream->opened.set();
  if (!self->http_sse_post_url_ || stream->waiter->cancelled()) co_return;
  self->fail(Error(ErrorKind::closed, self->description() + " closed its event stream" +
                                          (ended ? std::string() : ": " + ended.error().message())));
}

}  // namespace fairlead::transport
