// EventStream: a response that is a stream of server-sent events. It is cut when the client reads too slowly.
// Private to the layer.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "fairlead/base/bytes.hpp"
#include "fairlead/http/server.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/loop/timer.hpp"

namespace fairlead::admin {

// A stream whose client has not read this many bytes is closed.
inline constexpr std::size_t kMaxEventBacklogBytes = 1u << 20;

// Returns one event in its serialized form. REQUIRES: `name` and `id` have no line break.
Bytes encode_event(std::string_view name, const json::Raw& data, std::string_view id = {});

class EventStream : public std::enable_shared_from_this<EventStream> {
 public:
  static constexpr std::chrono::seconds kKeepAlive{15};

  // Sends the head of the response.
  static std::shared_ptr<EventStream> start(std::shared_ptr<http::Exchange> exchange);

  void send(const Bytes& event);
  void send(std::string_view name, const json::Raw& data, std::string_view id = {}) {
    send(encode_event(name, data, id));
  }
  // Completes the response.
  void finish();
  // Keeps `subscription` until the stream ends.
  void keep(std::shared_ptr<void> subscription) {
    if (exchange_) subscription_ = std::move(subscription);
  }
  bool is_open() const noexcept { return exchange_ != nullptr; }
  // Called once when the stream ends: the client has disconnected or reads too slowly, or finish() was
  // called.
  void when_closed(std::function<void()> callback);

 private:
  explicit EventStream(std::shared_ptr<http::Exchange> exchange);
  void schedule_keep_alive();
  void close();

  std::shared_ptr<http::Exchange> exchange_;  // null when the stream has ended
  std::function<void()> closed_;
  std::shared_ptr<void> subscription_;
  Timer keep_alive_;
};

// Returns whether the client asks for an event stream: Accept lists text/event-stream.
bool accepts_events(const http::Headers& headers);
// Responds to a HEAD request with the head of an event stream. Returns false if it is another request.
bool respond_to_head(http::Exchange& exchange);

}  // namespace fairlead::admin
