#include "http/sse.hpp"

#include <algorithm>

#include "fairlead/json/scanner.hpp"

namespace fairlead::http {

namespace {

// A message smaller than this is copied into one buffer with the fields of the event; a larger one is not
// copied.
constexpr std::size_t kMinSharedBytes = 4u << 10;

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
  std::string head;
  head.reserve(64 + (line.size() < kMinSharedBytes ? line.size() : 0));
  if (!id.empty()) head.append("id: ").append(id).append("\n");
  head += "event: message\ndata: ";
  EncodedEvent parts;
  if (line.size() < kMinSharedBytes) {
    line.each([&](const Bytes& part) { head += part.view(); });
    head += "\n\n";
    parts.push_back(Bytes::adopt(std::move(head)));
    return parts;
  }
  parts.push_back(Bytes::adopt(std::move(head)));
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
