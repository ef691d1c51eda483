// SseParser: parses a stream of server-sent events incrementally. Does no I/O.
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
  std::string type;  // empty means "message"
  std::string data;  // the values of the data fields, joined with \n
};

class SseParser {
 public:
  // `max_event_bytes` limits the size of one event, and of one line.
  explicit SseParser(std::size_t max_event_bytes) : max_event_bytes_(max_event_bytes) {}

  // Parses `bytes` and calls `on_event` for each event that becomes complete. Does not call it for events
  // without data, but uses their id and `retry`. Fails with `frame_too_large` if an event exceeds the limit;
  // all later calls then fail too. `on_event` must not call feed().
  Result<void> feed(std::string_view bytes, const std::function<void(SseEvent)>& on_event);

  // Returns the id to send as Last-Event-ID: that of the last complete event with an id field; empty if no
  // event had one.
  const std::string& last_event_id() const noexcept { return last_event_id_; }
  // Returns the delay before a reconnect that the server requested last.
  std::optional<std::chrono::milliseconds> retry() const noexcept { return retry_; }
  // Returns the number of complete events, including those without data.
  std::uint64_t event_count() const noexcept { return event_count_; }

 private:
  void process_line(std::string_view text, const std::function<void(SseEvent)>& on_event);
  void process_field(std::string_view name, std::string_view value);
  void dispatch(const std::function<void(SseEvent)>& on_event);
  bool over_limit(std::size_t more) const noexcept {
    return partial_line_.size() + event_.data.size() + event_.type.size() + more > max_event_bytes_;
  }

  std::size_t max_event_bytes_;
  std::string partial_line_;  // the received part of an incomplete line
  bool after_cr_ = false;     // the last byte was \r; a \n that follows belongs to the same line end
  bool at_start_ = true;      // no line has been parsed, so a byte order mark is allowed
  bool has_field_ = false;    // the current event has a field
  bool has_data_ = false;
  SseEvent event_;          // the current event
  std::string pending_id_;  // the last id field, which counts when its event is complete
  std::string last_event_id_;
  std::optional<std::chrono::milliseconds> retry_;
  std::uint64_t event_count_ = 0;
  bool failed_ = false;
};

}  // namespace fairlead::http
