// Parses server-sent events from arbitrary bytes: the events do not depend on how the stream is split, no
// event is larger than the limit, and none has a line end other than \n.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "http/sse_parser.hpp"

using namespace fairlead;

namespace {

constexpr std::size_t kLimit = 1000;

struct Parsed {
  std::vector<std::string> events;
  std::string last_id;
  std::optional<std::chrono::milliseconds> retry;
  bool failed = false;
};

Parsed parse(std::string_view text, std::size_t piece) {
  http::SseParser parser(kLimit);
  Parsed parsed;
  while (!text.empty() && !parsed.failed) {
    const std::string_view now = text.substr(0, piece);
    parsed.failed = !parser.feed(now, [&](http::SseEvent event) {
      if (event.data.empty() || event.data.size() > kLimit) std::abort();
      if ((event.data + event.type).find('\r') != std::string::npos) std::abort();
      parsed.events.push_back(event.type + "\n" + event.data);
    });
    text.remove_prefix(now.size());
  }
  parsed.last_id = parser.last_event_id();
  parsed.retry = parser.retry();
  return parsed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Parsed whole = parse(text, text.size() + 1);
  const Parsed pieces = parse(text, 1 + data[0] % 16);
  if (whole.failed != pieces.failed || whole.events != pieces.events) std::abort();
  if (!whole.failed && (whole.last_id != pieces.last_id || whole.retry != pieces.retry)) std::abort();
  return 0;
}
