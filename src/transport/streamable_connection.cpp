#include "transport/streamable_connection.hpp"

#include <algorithm>

#include "fairlead/json/view.hpp"
#include "fairlead/rpc/rope.hpp"
#include "peer/parse_in_steps.hpp"
#include "protocol/envelope.hpp"
#include "protocol/header_values.hpp"

namespace fairlead::transport {

namespace {

constexpr std::size_t kExcerptBytes = 200;
constexpr std::chrono::milliseconds kRefusalTimeout{5'000};  // for the body of an error status

bool is_modern_code(std::int64_t code) {
  return code <= mcp::kHeaderMismatch && code >= mcp::kUnsupportedVersion;
}

}  // namespace

Error status_error(const http::Url& url, const http::Incoming& incoming, std::string_view body) {
  std::string excerpt(body.substr(0, kExcerptBytes));
  std::ranges::replace_if(
      excerpt, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  const int status = incoming.status();
  std::string message = url.shown() + " answered " + std::to_string(status);
  const Redactor& redactor = incoming.redactor();  // a server may repeat what it was sent
  if (!incoming.reason().empty()) message += " " + redactor.redact_excerpt(incoming.reason().substr(0, 100));
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
      log_(client_->options().log) {}

// ---- queueing --------------------------------------------------------------------------------------------

Result<void> StreamableConnection::enqueue(const rpc::Rope& rope, Waiter* waiter, Concerning /*not needed*/) {
  Result<OutgoingMessage> message = OutgoingMessage::of(rope, client_->options().limits);
  if (!message) return message.error();
  const std::size_t size = message->size();
  pushed_ += size;
  if (waiter) waiter->until = pushed_;
  if (swallows_cancel(*message)) {
    loop().post([self = self()] { self->notify_written(self->written()); });
    return {};
  }
  const bool modern = state_.sending(*message);
  auto post = std::make_shared<Post>(loop(), std::move(*message), modern);
  post->position = pushed_;
  unsent_.emplace(pushed_, size);
  backlog_ += size;
  posts_.insert(post);
  if (!post->id.empty()) calls_[post->id] = post;
  // Started by the loop: whoever waits for it is not listed yet.
  loop().post([self = self(), post] { self->loop().spawn(carry(self, post)); });
  return {};
}

// To cancel a request of the modern era, or one that has not left yet, is to close its stream; nothing is
// sent. In the legacy era the stream is closed too, as there will be no answer, but the server is told.
bool StreamableConnection::swallows_cancel(const OutgoingMessage& message) {
  if (!message.is_notification() || message.method() != "notifications/cancelled") return false;
  const auto found = calls_.find(message.message().param("requestId").text());
  if (found == calls_.end()) return true;  // answered meanwhile, or never sent
  const PostPtr post = found->second;
  calls_.erase(found);
  post->interrupt->raise();
  return post->modern || !post->written || post->message.is_handshake();
}

std::uint64_t StreamableConnection::written() const noexcept {
  return unsent_.empty() ? pushed_ : unsent_.begin()->first - unsent_.begin()->second;
}

std::uint64_t StreamableConnection::position_at_backlog(std::size_t bytes) const noexcept {
  return pushed_ - std::min<std::uint64_t>(bytes, pushed_);
}

void StreamableConnection::mark_written(Post& post) {
  post.written = true;
  const auto found = unsent_.find(post.position);
  if (found == unsent_.end()) return;
  backlog_ -= found->second;
  unsent_.erase(found);
  notify_written(written());
}

// ---- one message -----------------------------------------------------------------------------------------

Task<void> StreamableConnection::carry(std::shared_ptr<StreamableConnection> self, PostPtr post) {
  Result<void> outcome;
  if (!post->interrupt->raised()) {
    try {
      Task<Result<void>> performing = self->perform(post);
      outcome = co_await performing;
    } catch (const std::bad_alloc&) {
      outcome = Error(ErrorKind::resource_exhausted, "resource exhausted: out of memory");
    }
  }
  self->finish(post, outcome);
}

void StreamableConnection::finish(const PostPtr& post, const Result<void>& outcome) {
  posts_.erase(post);
  const bool given_up = post->interrupt->raised() || reason();
  if (!outcome && !given_up && post->id.empty()) {
    log_.warning("a message could not be sent",
                 {{"connection", description()}, {"problem", outcome.error().to_string()}});
    if (unsent_.contains(post->position)) notify_unsent(post->position, outcome.error());
  }
  mark_written(*post);
  // In the HTTP+SSE pair the answer is still to come.
  if (post->id.empty() || (outcome && pair_)) return;
  const auto waiting = calls_.find(post->id);
  if (waiting == calls_.end() || waiting->second != post) return;
  calls_.erase(waiting);
  if (given_up) return;
  fail_call(post->id, outcome ? Error(ErrorKind::id_mismatch, description() + " answered another request")
                              : outcome.error());
}

Task<Result<void>> StreamableConnection::perform(PostPtr post) {
  const bool legacy = !post->modern && !post->internal && !post->message.is_handshake();
  for (bool again = false;; again = true) {
    if (legacy && lost_revision_) {
      Task<Result<void>> renewing = renew_session();
      const Result<void> renewed = co_await renewing;
      if (!renewed) co_return renewed.error();
      if (post->interrupt->raised()) co_return post->interrupt->error();
    }
    const std::uint64_t generation = generation_;
    const bool in_session = legacy && !state_.session().empty();
    Task<Answered> sending = send(post);
    const Answered incoming = co_await sending;
    if (!incoming) co_return incoming.error();
    if ((*incoming)->status() == 404 && in_session && !again && !pair_) {
      if (generation == generation_ && !lost_revision_) lost_revision_ = state_.revision();
      continue;
    }
    const bool accepted = (*incoming)->status() / 100 == 2;
    Task<Result<void>> taking = accepted ? take_answer(post, *incoming) : take_refusal(post, *incoming);
    Result<void> taken = co_await taking;
    co_return taken;
  }
}

Task<StreamableConnection::Answered> StreamableConnection::send(PostPtr post) {
  http::Outgoing request("POST", pair_ ? *pair_ : url_);
  request.headers = state_.headers_for(post->message);
  request.body = post->message.body();
  request.response_timeout = client_->options().response_timeout;
  // A call has a deadline, and ends with it; nobody watches over the rest.
  if (request.response_timeout.count() == 0 && (post->id.empty() || post->internal))
    request.response_timeout = client_->options().limits.call_timeout;
  // A request has been sent when it has left; what has no answer of its own, when the server has accepted it.
  if (!post->id.empty()) request.written = [self = self(), post] { self->mark_written(*post); };
  Task<Answered> asking = client_->ask(std::move(request), post->interrupt);
  Answered answer = co_await asking;
  co_return answer;
}

Task<Result<void>> StreamableConnection::take_answer(PostPtr post, std::shared_ptr<http::Incoming> incoming) {
  if (post->id.empty()) {  // whatever the body says, nobody asked
    incoming->set_deadline(Clock::now() + kRefusalTimeout);
    Task<Result<std::string>> reading = incoming->read_all(client_->options().max_response_bytes);
    const Result<std::string> ignored = co_await reading;
    static_cast<void>(ignored);
    if (!post->modern && !pair_ && post->message.method() == "notifications/initialized") {
      Task<void> opening = open_stream();
      co_await opening;
    }
    co_return Result<void>();
  }
  if (post->message.is_handshake() && incoming->headers().has(mcp::kSessionHeader) &&
      !state_.name_session(incoming->headers().get(mcp::kSessionHeader))) {
    log_.warning("the server's session id is not one", {{"connection", description()}});
  }
  if (pair_) co_return Result<void>();  // the answer comes on the stream
  if (post->internal) incoming->set_deadline(Clock::now() + client_->options().limits.call_timeout);
  const std::string type = incoming->media_type();
  if (type == "application/json") {
    Task<Result<void>> taking = take_json(post, incoming);
    Result<void> taken = co_await taking;
    co_return taken;
  }
  if (type == "text/event-stream") {
    Task<Result<void>> taking = take_events(post, incoming);
    Result<void> taken = co_await taking;
    co_return taken;
  }
  if (incoming->status() == 202 || incoming->status() == 204)
    co_return status_error(url_, *incoming, "a request was accepted without an answer");
  co_return Error(
      ErrorKind::invalid_content_type,
      url_.shown() + " answered with " +
          (type.empty() ? std::string("no content type") : "content type `" + type.substr(0, 100) + "`") +
          " where application/json or text/event-stream was expected");
}

Task<Result<void>> StreamableConnection::take_json(PostPtr post, std::shared_ptr<http::Incoming> incoming) {
  Task<Result<std::string>> reading = incoming->read_all(client_->options().max_response_bytes);
  Result<std::string> body = co_await reading;
  if (!body) co_return body.error();
  const Bytes frame = Bytes::adopt(std::move(*body));
  rpc::Message message;
  if (is_large_frame(frame)) {
    Task<rpc::Message> parsing = parse_in_steps(loop(), frame, client_->options().limits);
    message = co_await parsing;
    if (reason()) co_return *reason();
  } else {
    message = rpc::Message::parse(frame, client_->options().limits);
  }
  if (message.is(rpc::Kind::malformed)) {
    co_return Error(ErrorKind::parse,
                    url_.shown() + " answered with what is no message: " + message.problem().message());
  }
  on_message(message, post.get());
  wake_receiver();
  co_return Result<void>();
}

// What the server has to say about a request it refuses is the answer, when it says so in JSON-RPC.
Task<Result<void>> StreamableConnection::take_refusal(PostPtr post,
                                                      std::shared_ptr<http::Incoming> incoming) {
  const int status = incoming->status();
  incoming->set_deadline(Clock::now() + kRefusalTimeout);
  Task<Result<std::string>> reading = incoming->read_all(client_->options().max_response_bytes);
  Result<std::string> body = co_await reading;
  const std::string text = body ? std::move(*body) : std::string();
  const Bytes frame = Bytes::copy_of(text);
  Task<rpc::Message> parsing = parse_in_steps(loop(), frame, client_->options().limits);
  const rpc::Message message = co_await parsing;
  if (reason()) co_return *reason();
  const bool said = message.is(rpc::Kind::error);
  const std::int64_t code = said ? message.remote_error().detail().rpc_code.value_or(0) : 0;
  const bool old_server = (status == 400 || status == 404 || status == 405) && !is_modern_code(code);
  if (post->message.is_handshake() && old_server && !pair_) {
    Task<Result<void>> opening = open_pair();
    const Result<void> opened = co_await opening;
    if (opened) {
      Task<Result<void>> performing = perform(post);
      Result<void> performed = co_await performing;
      co_return performed;
    }
    log_.debug("no HTTP+SSE either", {{"connection", description()}, {"problem", opened.error().message()}});
  }
  Error refused = status_error(url_, *incoming, said ? std::string() : text);
  if (!said || refused.kind() == ErrorKind::authorization) co_return refused;
  // A server's own failure says nothing about the request, whatever form it has.
  if (status >= 500 || post->id.empty()) {
    const Error remote = message.remote_error();
    co_return Error(refused.kind(),
                    refused.message() + ": " +
                        incoming->redactor().redact_excerpt(remote.message().substr(0, kExcerptBytes)))
        .with([&](ErrorDetail& detail) {
          detail = remote.detail();
          detail.http_status = status;
        });
  }
  // The body of an error status is about the request it answers. The Python SDK names it "server-error".
  on_message(message.id() == post->id ? message : with_id(message, post->id), post.get());
  wake_receiver();
  co_return Result<void>();
}

// ---- the end ---------------------------------------------------------------------------------------------

void StreamableConnection::release() {
  for (const PostPtr& post : posts_) post->interrupt->raise();
  calls_.clear();
  if (stream_) stream_->interrupt->raise();
  if (!state_.session().empty() && !state_.modern() && !pair_) {
    loop().spawn(say_goodbye(self()));
  } else {
    client_->close();
    settled_.set();
  }
}

}  // namespace fairlead::transport
