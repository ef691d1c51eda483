// SseParser: cuts a stream of server-sent events into events. Does no I/O: bytes go in as they come, events
// come out when they are whole.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"

namespace fairlead::http {

struct SseEvent {
  std::string type;  // empty: "message"
  std::string data;  // its lines joined by \n
};

class SseParser {
 public:
  // `max_event_bytes` bounds what one event, and one line, may hold.
  explicit SseParser(std::size_t max_event_bytes) : max_event_bytes_(max_event_bytes) {}

  // Calls `take` for each event that ends in `bytes`; events without data are not worth a call, but their id
  // counts. Fails (frame_too_large) for good once an event is over the limit. `take` must not feed this
  // parser.
  Result<void> feed(std::string_view bytes, const std::function<void(SseEvent)>& take);

  // Of the last whole event that had one: where to resume. Empty when there was none.
  const std::string& last_event_id() const noexcept { return last_event_id_; }
  // How long the server wants to be left alone before it is asked again.
  std::optional<std::chrono::milliseconds> retry() const noexcept { return retry_; }
  // How many events have ended, those without data among them.
  std::uint64_t events() const noexcept { return events_; }

 private:
  void line(std::string_view text, const std::function<void(SseEvent)>& take);
  void field(std::string_view name, std::string_view value);
  void dispatch(const std::function<void(SseEvent)>& take);
  bool over_limit(std::size_t more) const noexcept {
    return partial_.size() + event_.data.size() + event_.type.size() + more > max_event_bytes_;
  }

  std::size_t max_event_bytes_;
  std::string partial_;     // a line whose end has not come yet
  bool after_cr_ = false;   // a \n that comes next belongs to the line end before it
  bool at_start_ = true;    // a byte order mark may stand here
  bool any_field_ = false;  // the event under way has one
  bool has_data_ = false;
  SseEvent event_;  // under way
  std::string id_;  // as of the event under way
  std::string last_event_id_;
  std::optional<std::chrono::milliseconds> retry_;
  std::uint64_t events_ = 0;
  bool broken_ = false;
};

}  // namespace fairlead::http
