#include "http/sse_parser.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace fairlead::http {

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

Result<void> SseParser::feed(std::string_view bytes, const std::function<void(SseEvent)>& on_event) {
  const auto too_large = [this] {
    failed_ = true;
    return Error(ErrorKind::frame_too_large,
                 "an event is over the limit of " + std::to_string(max_event_bytes_) + " bytes");
  };
  if (failed_) return too_large();
  while (!bytes.empty()) {
    if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const std::size_t end = bytes.find_first_of("\r\n");
    if (over_limit(std::min(end, bytes.size()))) return too_large();
    if (end == std::string_view::npos) {
      partial_line_ += bytes;
      break;
    }
    if (partial_line_.empty()) {
      process_line(bytes.substr(0, end), on_event);
    } else {
      partial_line_ += bytes.substr(0, end);
      const std::string whole = std::exchange(partial_line_, std::string());
      process_line(whole, on_event);
    }
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
  }
  return {};
}

void SseParser::process_line(std::string_view text, const std::function<void(SseEvent)>& on_event) {
  if (std::exchange(at_start_, false) && text.starts_with(kByteOrderMark))
    text.remove_prefix(kByteOrderMark.size());
  if (text.empty()) return dispatch(on_event);
  if (text.front() == ':') return;
  const std::size_t colon = text.find(':');
  std::string_view value = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  process_field(text.substr(0, colon), value);
}

void SseParser::process_field(std::string_view name, std::string_view value) {
  has_field_ = true;
  if (name == "data") {
    if (std::exchange(has_data_, true)) event_.data += '\n';
    event_.data += value;
  } else if (name == "event") {
    event_.type = value;
  } else if (name == "id") {
    if (value.find('\0') == std::string_view::npos) pending_id_ = value;
  } else if (name == "retry") {
    std::uint32_t number = 0;
    const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (!value.empty() && problem == std::errc() && end == value.data() + value.size())
      retry_ = std::chrono::milliseconds(number);
  }
}

void SseParser::dispatch(const std::function<void(SseEvent)>& on_event) {
  SseEvent event = std::exchange(event_, SseEvent());
  last_event_id_ = pending_id_;
  if (std::exchange(has_field_, false)) ++event_count_;
  if (std::exchange(has_data_, false) && !event.data.empty()) on_event(std::move(event));
}

}  // namespace fairlead::http
