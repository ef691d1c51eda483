#include "admin/event_stream.hpp"

#include "fairlead/json/scanner.hpp"
#include "http/sse.hpp"

namespace fairlead::admin {

Bytes encode_event(std::string_view name, const json::Raw& data, std::string_view id) {
  std::string text;
  if (!id.empty()) text.append("id: ").append(id).append("\n");
  text.append("event: ").append(name).append("\ndata: ");
  text += data.is_one_line() ? std::string(data.text()) : json::to_one_line(data.text());
  text += "\n\n";
  return Bytes::adopt(std::move(text));
}

EventStream::EventStream(std::shared_ptr<http::Exchange> exchange)
    : exchange_(std::move(exchange)), keep_alive_(exchange_->loop()) {}

std::shared_ptr<EventStream> EventStream::start(std::shared_ptr<http::Exchange> exchange) {
  std::shared_ptr<EventStream> stream(new EventStream(std::move(exchange)));
  stream->exchange_->start(http::sse::response_head());
  // The head is sent with the first data, so a comment is sent at once: the client knows that the stream
  // works.
  stream->send(Bytes::constant(": open\n\n"));
  if (!stream->exchange_) return stream;
  stream->exchange_->when_disconnected([weak = std::weak_ptr<EventStream>(stream)] {
    if (const auto self = weak.lock()) self->close();
  });
  stream->schedule_keep_alive();
  return stream;
}

void EventStream::send(const Bytes& event) {
  if (!exchange_) return;
  if (exchange_->disconnected()) return close();
  if (exchange_->backlog() > kMaxEventBacklogBytes) {
    exchange_->abort();
    return close();
  }
  std::vector<Bytes> parts;
  parts.push_back(event);
  exchange_->write(std::move(parts));
}

void EventStream::finish() {
  if (!exchange_) return;
  exchange_->finish();
  close();
}

void EventStream::when_closed(std::function<void()> callback) {
  if (!exchange_) return callback();
  closed_ = std::move(callback);
}

void EventStream::schedule_keep_alive() {
  keep_alive_.arm_after(kKeepAlive, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->send(Bytes::constant(": keepalive\n\n"));
    if (self->exchange_) self->schedule_keep_alive();
  });
}

void EventStream::close() {
  keep_alive_.cancel();
  const std::shared_ptr<EventStream> alive = shared_from_this();
  exchange_ = nullptr;
  const std::shared_ptr<void> subscription = std::exchange(subscription_, nullptr);
  const auto callback = std::exchange(closed_, nullptr);
  if (callback) callback();
}

bool respond_to_head(http::Exchange& exchange) {
  if (exchange.request().method != "HEAD") return false;
  exchange.respond(http::sse::response_head());
  return true;
}

bool accepts_events(const http::Headers& headers) {
  for (const auto& [name, value] : headers) {
    if (http::equals_ignore_case(name, "Accept") && value.find("text/event-stream") != std::string_view::npos)
      return true;
  }
  return false;
}

}  // namespace fairlead::admin
