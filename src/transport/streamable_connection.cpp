#include "transport/streamable_connection.hpp"

#include <algorithm>

#include "fairlead/json/view.hpp"
#include "fairlead/rpc/rope.hpp"
#include "peer/parse_in_steps.hpp"
#include "protocol/envelope.hpp"
#include "protocol/header_values.hpp"
#include "rpc/message_parser.hpp"

namespace fairlead::transport {

namespace {

constexpr std::size_t kMaxExcerptBytes = 200;
constexpr std::size_t kMaxProblemBytes = 16u << 10;  // a larger problem document is not parsed
constexpr std::size_t kStartsPerTurn = 16;           // POSTs that are started per turn of the loop
// Time limit for reading a body that is not a response to a request.
constexpr std::chrono::milliseconds kNonResponseBodyTimeout{5'000};

bool is_modern_error_code(std::int64_t code) {
  return code <= mcp::kHeaderMismatch && code >= mcp::kUnsupportedVersion;
}

// If the body is a problem document (RFC 9457), returns its description and its remedy, otherwise the
// beginning of the body. Control characters are replaced.
std::string excerpt_of(const http::ClientResponse& response, std::string_view body) {
  std::string excerpt(body.substr(0, kMaxExcerptBytes));
  const bool is_problem = response.headers().get("Content-Type").starts_with("application/problem+json");
  if (is_problem && body.size() <= kMaxProblemBytes) {
    const Result<json::Raw> document = json::Raw::parse(std::string(body));
    const json::View problem = document ? json::View(*document) : json::View();
    const std::string detail = problem["detail"].as_string().value_or("");
    const std::string remedy = problem["remedy"].as_string().value_or("");
    if (!detail.empty())
      excerpt = detail.substr(0, kMaxExcerptBytes) +
                (remedy.empty() ? "" : ". " + remedy.substr(0, kMaxExcerptBytes));
  }
  std::ranges::replace_if(
      excerpt, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return excerpt;
}

}  // namespace

Error status_error(const http::Url& url, const http::ClientResponse& response, std::string_view body) {
  const std::string excerpt = excerpt_of(response, body);
  const int status = response.status();
  std::string message = url.redacted() + " answered " + std::to_string(status);
  const Redactor& redactor = response.redactor();  // a server may echo credentials
  if (!response.reason().empty()) message += " " + redactor.redact_excerpt(response.reason().substr(0, 100));
  if (!excerpt.empty()) message += ": " + redactor.redact_excerpt(excerpt);
  const bool forbidden = status == 401 || status == 403;
  return Error(forbidden ? ErrorKind::authorization : ErrorKind::http_status, std::move(message))
      .with([&](ErrorDetail& detail) { detail.http_status = status; });
}

StreamableConnection::StreamableConnection(Loop& loop, http::Url url,
                                           std::shared_ptr<http::HttpClient> client,
                                           ReconnectLimits reconnect)
    : Connection(loop),
      url_(std::move(url)),
      client_(std::move(client)),
      reconnect_(reconnect),
      log_(client_->options().log),
      direct_(http::DirectExchange::supports(*client_) && !client_->options().headers.has(mcp::kNameHeader)) {
}

// ---- queueing ------------------------------------------------------------------------------------------

Result<void> StreamableConnection::enqueue(const rpc::Rope& rope, WriteWaiter* waiter,
                                           RelatedRequest /*not needed*/) {
  Result<HttpClientMessage> message = HttpClientMessage::from_rope(rope, client_->options().limits);
  if (!message) return message.error();
  const std::size_t size = message->size();
  queued_position_ += size;
  if (waiter) waiter->until = queued_position_;
  if (intercept_cancellation(*message)) {
    loop().post([self = self()] { self->notify_written(self->sent_position()); });
    return {};
  }
  const bool modern = state_.on_send(*message);
  auto post = make_cached<Post>(*this, std::move(*message), modern);
  post->position = queued_position_;
  unsent_.add(queued_position_, size);
  add_post(post);
  if (!post->id.empty()) add_call(post);
  // Starts in a later callback, because the caller registers `waiter` only after this function has returned.
  if (unstarted_.empty()) loop().post([self = self()] { self->start_posts(); });
  unstarted_.push(std::move(post));
  return {};
}

void StreamableConnection::start_posts() {
  for (std::size_t i = 0; i < kStartsPerTurn && !unstarted_.empty(); ++i) {
    PostPtr post = std::move(unstarted_.front());
    unstarted_.pop();
    if (!start_directly(post)) loop().spawn(run_post(self(), std::move(post)));
  }
  if (!unstarted_.empty()) loop().post([self = self()] { self->start_posts(); });
}

void StreamableConnection::add_call(const PostPtr& post) {
  const auto [entry, added] = calls_.emplace(post->id, post);
  if (!added) {  // the key of an entry refers to the id of its own post
    remove_call(*PostPtr(entry->second));
    calls_.emplace(post->id, post);
  }
  post->is_pending = true;
}

void StreamableConnection::remove_call(Post& post) {
  if (std::exchange(post.is_pending, false)) calls_.erase(post.id);
}

void StreamableConnection::add_post(const PostPtr& post) {
  post->index = posts_.size();
  posts_.push_back(post);
}

// REQUIRES: the caller holds a reference to `post`.
void StreamableConnection::remove_post(const Post& post) {
  std::swap(posts_[post.index], posts_.back());
  posts_[post.index]->index = post.index;
  posts_.pop_back();
}

// A request of the modern era, or one that has not been sent yet, is cancelled by closing its HTTP exchange;
// the notification is not sent. For a request of the legacy era the exchange is closed too, because the
// server will not respond, and the notification is sent.
bool StreamableConnection::intercept_cancellation(const HttpClientMessage& message) {
  if (!message.is_notification() || message.method() != "notifications/cancelled") return false;
  const auto found = calls_.find(message.message().param("requestId").text());
  if (found == calls_.end()) return true;  // the request already has a response, or was never sent
  const PostPtr post = found->second;
  remove_call(*post);
  cancel_post(post);
  return post->modern || !post->written || post->message.is_handshake();
}

void StreamableConnection::cancel_post(const PostPtr& post) {
  if (post->cancelled()) return;
  post->cancel();
  if (!post->in_progress()) return;
  loop().post([self = self(), post] { self->loop().spawn(run_post(self, post)); });
}

std::uint64_t StreamableConnection::sent_position() const noexcept {
  return unsent_.sent_position(queued_position_);
}

std::uint64_t StreamableConnection::position_at_backlog(std::size_t bytes) const noexcept {
  return queued_position_ - std::min<std::uint64_t>(bytes, queued_position_);
}

void StreamableConnection::mark_written(Post& post) {
  if (std::exchange(post.written, true)) return;
  if (unsent_.remove(post.position)) notify_written(sent_position());
}

// ---- one message ---------------------------------------------------------------------------------------

Task<void> StreamableConnection::run_post(std::shared_ptr<StreamableConnection> self, PostPtr post) {
  Result<void> outcome;
  if (!post->cancelled()) {
    try {
      outcome = co_await self->send_and_handle(post);
    } catch (const std::bad_alloc&) {
      outcome = Error(ErrorKind::resource_exhausted, "resource exhausted: out of memory");
    }
  }
  self->finish_post(post, outcome);
}

void StreamableConnection::finish_post(const PostPtr& post, const Result<void>& outcome) {
  remove_post(*post);
  const bool cancelled = post->cancelled() || close_reason();
  if (!outcome && !cancelled && post->id.empty()) {
    log_.warning("message could not be sent",
                 {{"connection", description()}, {"problem", outcome.error().to_string()}});
    if (unsent_.contains(post->position)) notify_unsent(post->position, outcome.error());
  }
  mark_written(*post);
  // With HTTP+SSE the response arrives later, on the stream of the server.
  if (post->id.empty() || (outcome && http_sse_post_url_)) return;
  if (!post->is_pending) return;
  remove_call(*post);
  if (cancelled) return;
  fail_call(post->id, outcome
                          ? Error(ErrorKind::id_mismatch, description() + " responded to a different request")
                          : outcome.error());
}

Task<Result<void>> StreamableConnection::send_and_handle(PostPtr post) {
  for (bool again = false;; again = true) {
    if (!post->in_progress()) {
      if (post->uses_session() && lost_session_revision_) {
        const Result<void> renewed = co_await renew_session();
        if (!renewed) co_return renewed.error();
        if (post->cancelled()) co_return post->cancelled_error();
      }
      note_session_of(*post);
    }
    http::ClientRequest request = request_for(post);
    const ResponseResult response = co_await client_->send(std::move(request), post);
    if (!response) co_return response.error();
    std::optional<Result<void>> handled_at_once = handle_received_response(*post, **response);
    if (handled_at_once) co_return std::move(*handled_at_once);
    if ((*response)->status() == 404 && post->session && !again && !http_sse_post_url_) {
      if (*post->session == session_generation_) note_session_loss();
      continue;
    }
    const bool accepted = (*response)->status() / 100 == 2;
    Task<Result<void>> handling =
        accepted ? handle_success(post, *response) : handle_error_status(post, *response);
    Result<void> handled = co_await handling;
    co_return handled;
  }
}

void StreamableConnection::note_session_of(Post& post) const {
  post.session.reset();
  if (post.uses_session() && !state_.session_id().empty()) post.session = session_generation_;
}

std::size_t StreamableConnection::max_parsed_at_once() const noexcept {
  return std::min(client_->options().max_response_bytes, rpc::MessageParser::kBytesPerStep);
}

http::ClientRequest StreamableConnection::request_for(const PostPtr& post) {
  http::ClientRequest request("POST", http_sse_post_url_ ? *http_sse_post_url_ : url_);
  request.headers = state_.headers_for(post->message);
  request.shared_body = post->message.body();
  request.shared_body_owner = post;
  request.begun = post->extract();
  request.response_timeout = client_->options().response_timeout;
  // A call has its own timeout; other messages need this one.
  if (request.response_timeout.count() == 0 && (post->id.empty() || post->internal))
    request.response_timeout = client_->options().limits.call_timeout;
  // A request counts as sent when it has been written to the socket; other messages count as sent when the
  // server has accepted them.
  if (!post->id.empty()) request.on_written = [this, sent = post.get()] { mark_written(*sent); };
  return request;
}

std::optional<Result<void>> StreamableConnection::handle_received_response(Post& post,
                                                                           http::ClientResponse& response) {
  if (response.status() / 100 != 2 || !is_plain_call(post) || http_sse_post_url_ ||
      !response.has_media_type("application/json"))
    return std::nullopt;
  std::optional<std::string> body = response.extract_received_body(max_parsed_at_once());
  if (!body) return std::nullopt;
  return handle_json_response(post,
                              rpc::Message::parse(Bytes::adopt(std::move(*body)), client_->options().limits));
}

Result<void> StreamableConnection::handle_json_response(Post& post, rpc::Message&& message) {
  if (message.is(rpc::Kind::malformed)) {
    return Error(ErrorKind::parse,
                 url_.redacted() + " responded with an invalid message: " + message.problem().message());
  }
  handle_message(std::move(message), &post);
  wake_receiver();
  return {};
}

Task<Result<void>> StreamableConnection::handle_success(PostPtr post,
                                                        std::shared_ptr<http::ClientResponse> response) {
  if (post->id.empty()) {  // the message is not a request, so the body is ignored
    response->set_deadline(Clock::now() + kNonResponseBodyTimeout);
    static_cast<void>(co_await response->read_all(client_->options().max_response_bytes));
    if (!post->modern && !http_sse_post_url_ && post->message.method() == "notifications/initialized") {
      co_await open_standalone_stream();
    }
    co_return Result<void>();
  }
  if (post->message.is_handshake() && response->headers().has(mcp::kSessionHeader) &&
      !state_.set_session_id(response->headers().get(mcp::kSessionHeader))) {
    log_.warning("invalid session id from the server is ignored", {{"connection", description()}});
  }
  if (http_sse_post_url_) co_return Result<void>();  // the response arrives on the stream of the server
  if (post->internal) response->set_deadline(Clock::now() + client_->options().limits.call_timeout);
  const std::string type = response->media_type();
  if (type == "application/json") {
    Result<void> handled = co_await read_json_response(post, response);
    co_return handled;
  }
  if (type == "text/event-stream") {
    Result<void> handled = co_await read_response_events(post, response);
    co_return handled;
  }
  if (response->status() == 202 || response->status() == 204)
    co_return status_error(url_, *response, "the request was accepted without a response");
  co_return Error(
      ErrorKind::invalid_content_type,
      url_.redacted() + " answered with " +
          (type.empty() ? std::string("no content type") : "content type `" + type.substr(0, 100) + "`") +
          " where application/json or text/event-stream was expected");
}

Task<Result<void>> StreamableConnection::read_json_response(PostPtr post,
                                                            std::shared_ptr<http::ClientResponse> response) {
  Result<std::string> body = co_await response->read_all(client_->options().max_response_bytes);
  if (!body) co_return body.error();
  const Bytes frame = Bytes::adopt(std::move(*body));
  rpc::Message message;
  if (is_large_frame(frame)) {
    message = co_await parse_in_steps(loop(), frame, client_->options().limits);
    if (close_reason()) co_return *close_reason();
  } else {
    message = rpc::Message::parse(frame, client_->options().limits);
  }
  co_return handle_json_response(*post, std::move(message));
}

// If the body of an error status is a JSON-RPC error, it is delivered as the response to the request.
Task<Result<void>> StreamableConnection::handle_error_status(PostPtr post,
                                                             std::shared_ptr<http::ClientResponse> response) {
  const int status = response->status();
  response->set_deadline(Clock::now() + kNonResponseBodyTimeout);
  Result<std::string> body = co_await response->read_all(client_->options().max_response_bytes);
  const std::string text = body ? std::move(*body) : std::string();
  const Bytes frame = Bytes::copy_of(text);
  const rpc::Message message = co_await parse_in_steps(loop(), frame, client_->options().limits);
  if (close_reason()) co_return *close_reason();
  const bool has_rpc_error = message.is(rpc::Kind::error);
  const std::int64_t code = has_rpc_error ? message.remote_error().detail().rpc_code.value_or(0) : 0;
  const bool legacy_server = (status == 400 || status == 404 || status == 405) && !is_modern_error_code(code);
  if (post->message.is_handshake() && legacy_server && !http_sse_post_url_) {
    const Result<void> opened = co_await fall_back_to_http_sse();
    if (opened) {
      Result<void> performed = co_await send_and_handle(post);
      co_return performed;
    }
    log_.debug("HTTP+SSE failed too", {{"connection", description()}, {"problem", opened.error().message()}});
  }
  Error refused = status_error(url_, *response, has_rpc_error ? std::string() : text);
  if (!has_rpc_error || refused.kind() == ErrorKind::authorization) co_return refused;
  // A 5xx status is a failure of the server and not a response to the request, even if the body is a JSON-RPC
  // error.
  if (status >= 500 || post->id.empty()) {
    const Error remote = message.remote_error();
    co_return Error(refused.kind(),
                    refused.message() + ": " +
                        response->redactor().redact_excerpt(remote.message().substr(0, kMaxExcerptBytes)))
        .with([&](ErrorDetail& detail) {
          detail = remote.detail();
          detail.http_status = status;
        });
  }
  // The error is the response to this request, even if its id differs: the Python SDK sends the id
  // "server-error".
  rpc::Message rpc_error = message.id() == post->id ? message : error_with_id(message, post->id);
  handle_message(std::move(rpc_error), post.get());
  wake_receiver();
  co_return Result<void>();
}

// ---- closing -------------------------------------------------------------------------------------------

void StreamableConnection::release() {
  for (const PostPtr& post : posts_) {
    cancel_post(post);
    post->is_pending = false;
  }
  calls_.clear();
  if (server_stream_) server_stream_->waiter->cancel();
  if (!state_.session_id().empty() && !state_.modern() && !http_sse_post_url_) {
    loop().spawn(delete_session(self()));
  } else {
    client_->close();
    released_.set();
  }
}

}  // namespace fairlead::transport
