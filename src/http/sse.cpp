#include "http/sse.hpp"

#include <algorithm>

#include "fairlead/json/scanner.hpp"

namespace fairlead::http {

namespace {

constexpr std::size_t kShareFrom = 4u << 10;  // below it a message is copied next to its fields

bool has_line_break(const rpc::Rope& message) {
  bool found = false;
  message.each([&](const Bytes& part) {
    const std::string_view text = part.view();
    // Not find_first_of, which is much slower.
    found = found || text.find('\n') != std::string_view::npos || text.find('\r') != std::string_view::npos;
  });
  return found;
}

}  // namespace

rpc::Rope one_line(const rpc::Rope& message) {
  if (message.one_line() || !has_line_break(message)) return message;
  return rpc::Rope(Bytes::adopt(json::one_line(message.joined().view())), true);
}

Response json_response(int status, const rpc::Rope& message) {
  Response response(status);
  response.headers.add("Content-Type", "application/json");
  one_line(message).each([&](const Bytes& part) { response.body.push_back(part); });
  return response;
}

namespace sse {

Response head() {
  Response head(200);
  head.headers.add("Content-Type", "text/event-stream");
  head.headers.add("Cache-Control", "no-cache, no-transform");
  head.headers.add("X-Accel-Buffering", "no");
  return head;
}

Parts message(const rpc::Rope& message, std::string_view id) {
  const rpc::Rope line = one_line(message);
  std::string head;
  head.reserve(64 + (line.size() < kShareFrom ? line.size() : 0));
  if (!id.empty()) head.append("id: ").append(id).append("\n");
  head += "event: message\ndata: ";
  Parts parts;
  if (line.size() < kShareFrom) {
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

Parts priming(std::string_view id, std::chrono::milliseconds retry) {
  return {
      Bytes::adopt("id: " + std::string(id) + "\nretry: " + std::to_string(retry.count()) + "\ndata: \n\n")};
}

Parts endpoint(std::string_view uri) {
  return {Bytes::join("event: endpoint\ndata: ", uri, "\n\n")};
}

Parts comment() {
  return {Bytes::constant(": keepalive\n\n")};
}

}  // namespace sse
}  // namespace fairlead::http
