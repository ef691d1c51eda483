#include "http/sse.hpp"

#include <algorithm>
#include <cstring>

#include "fairlead/json/scanner.hpp"

namespace fairlead::http {

namespace {

// A message smaller than this is copied into one buffer with the fields of the event; a larger one is not
// copied.
constexpr std::size_t kMinSharedBytes = 4u << 10;
constexpr std::size_t kEventFieldBytes =
    64;  // at least the size of the fields of an event but for id and message

bool has_line_break(const rpc::Rope& message) {
  bool found = false;
  message.each([&](const Bytes& part) {
    const std::string_view text = part.view();
    // Two calls of find() are much faster than find_first_of().
    found = found || text.find('\n') != std::string_view::npos || text.find('\r') != std::string_view::npos;
  });
  return found;
}

}  // namespace

rpc::Rope to_one_line(const rpc::Rope& message) {
  if (message.is_one_line() || !has_line_break(message)) return message;
  return rpc::Rope(Bytes::adopt(json::to_one_line(message.joined().view())), true);
}

Response json_response(int status, const rpc::Rope& message) {
  Response response(status);
  response.headers.add("Content-Type", "application/json");
  to_one_line(message).each([&](const Bytes& part) { response.body.push_back(part); });
  return response;
}

void respond_with_json(Exchange& exchange, int status, const rpc::Rope& message) {
  constexpr std::string_view kType = "application/json";
  if (message.is_one_line()) return exchange.respond_with(status, kType, message);
  exchange.respond_with(status, kType, to_one_line(message));
}

namespace sse {

Response response_head() {
  Response head(200);
  head.headers.add("Content-Type", "text/event-stream");
  head.headers.add("Cache-Control", "no-cache, no-transform");
  head.headers.add("X-Accel-Buffering", "no");
  return head;
}

EncodedEvent message_event(const rpc::Rope& message, std::string_view id) {
  const rpc::Rope line = to_one_line(message);
  const std::size_t size = line.size();
  const bool copied = size < kMinSharedBytes;
  EncodedEvent parts;
  parts.push_back(Bytes::build(kEventFieldBytes + id.size() + (copied ? size : 0), [&](char* out) {
    char* end = out;
    const auto put = [&](std::string_view text) {
      std::memcpy(end, text.data(), text.size());
      end += text.size();
    };
    if (!id.empty()) {
      put("id: ");
      put(id);
      put("\n");
    }
    put("event: message\ndata: ");
    if (copied) {
      line.each([&](const Bytes& part) { put(part.view()); });
      put("\n\n");
    }
    return static_cast<std::size_t>(end - out);
  }));
  if (copied) return parts;
  line.each([&](const Bytes& part) { parts.push_back(part); });
  parts.push_back(Bytes::constant("\n\n"));
  return parts;
}

EncodedEvent priming_event(std::string_view id, std::chrono::milliseconds retry) {
  return {
      Bytes::adopt("id: " + std::string(id) + "\nretry: " + std::to_string(retry.count()) + "\ndata: \n\n")};
}

EncodedEvent endpoint_event(std::string_view uri) {
  return {Bytes::join("event: endpoint\ndata: ", uri, "\n\n")};
}

EncodedEvent keep_alive_comment() {
  return {Bytes::constant(": keepalive\n\n")};
}

}  // namespace sse
}  // namespace fairlead::http
