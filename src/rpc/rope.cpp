#include "fairlead/rpc/rope.hpp"

#include <string>

#include "fairlead/base/buffer_cache.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::rpc {

namespace {

// Params and results of at least this size are shared as a separate part; smaller ones are copied into the
// buffer of the message, which is cheaper.
constexpr std::size_t kMinSharedBytes = 4u << 10;

Rope wrap_body(std::string_view head, const json::Raw& body) {
  const bool one_line = body.is_one_line();
  if (body.text().size() < kMinSharedBytes) return Rope(Bytes::join(head, body.text(), "}"), one_line);
  std::vector<Bytes> parts;
  parts.reserve(3);
  parts.push_back(Bytes::copy_of(head));
  parts.push_back(body.bytes());
  parts.push_back(Bytes::constant("}"));
  return Rope(std::move(parts), one_line);
}

std::string request_head(std::string_view id, std::string_view method) {
  std::string head;
  head.reserve(64 + id.size() + method.size());
  head += "{\"jsonrpc\":\"2.0\",\"id\":";
  head += id;
  head += ',';
  return head;
}

// Appends method and params to `head`, the beginning of a request or notification.
Rope with_method(std::string head, std::string_view method, const json::Raw& params) {
  head += "\"method\":";
  json::append_string(head, method);
  if (params.absent()) {
    head += '}';
    return Rope(Bytes::adopt(std::move(head)), true);
  }
  head += ",\"params\":";
  return wrap_body(head, params);
}

}  // namespace

std::size_t Rope::size() const noexcept {
  std::size_t total = head_.size();
  for (const Bytes& part : rest_) total += part.size();
  return total;
}

Bytes Rope::joined() const {
  if (rest_.empty()) return head_;
  std::string text;
  detail::reserve_buffer(text, size());
  each([&](const Bytes& part) { text += part.view(); });
  return Bytes::adopt(std::move(text));
}

Rope make_request(std::string_view id, std::string_view method, const json::Raw& params) {
  return with_method(request_head(id, method), method, params);
}

Rope make_request(std::string_view id, std::string_view method, std::vector<Bytes> params, bool one_line) {
  std::string head = request_head(id, method);
  head += "\"method\":";
  json::append_string(head, method);
  head += ",\"params\":";
  params.insert(params.begin(), Bytes::adopt(std::move(head)));
  params.push_back(Bytes::constant("}"));
  return Rope(std::move(params), one_line);
}

Rope make_notification(std::string_view method, const json::Raw& params) {
  return with_method("{\"jsonrpc\":\"2.0\",", method, params);
}

Rope make_response(std::string_view id, const json::Raw& result) {
  constexpr std::string_view kHead = "{\"jsonrpc\":\"2.0\",\"id\":";
  constexpr std::string_view kResult = ",\"result\":";
  const std::string_view body = result.absent() ? "null" : result.text();
  if (body.size() < kMinSharedBytes)
    return Rope(Bytes::join(kHead, id, kResult, body, "}"), result.is_one_line());
  std::vector<Bytes> parts;
  parts.reserve(3);
  parts.push_back(Bytes::join(kHead, id, kResult));
  parts.push_back(result.bytes());
  parts.push_back(Bytes::constant("}"));
  return Rope(std::move(parts), result.is_one_line());
}

Rope make_error(std::string_view id, std::int64_t code, std::string_view message, std::string_view data) {
  std::string text = "{\"jsonrpc\":\"2.0\",";
  if (!id.empty()) {
    text += "\"id\":";
    text += id;
    text += ',';
  }
  text += "\"error\":{\"code\":" + std::to_string(code) + ",\"message\":";
  json::append_string(text, message);
  if (!data.empty()) {
    text += ",\"data\":";
    text += data;
  }
  text += "}}";
  return Rope(Bytes::adopt(std::move(text)));
}

Rope with_id(const Message& message, std::string_view id) {
  const std::string_view whole = message.frame().view();
  const auto at = static_cast<std::size_t>(message.id().data() - whole.data());
  const std::string_view before = whole.substr(0, at);
  const std::string_view after = whole.substr(at + message.id().size());
  const bool one_line = !message.has_line_break();
  if (whole.size() < kMinSharedBytes) return Rope(Bytes::join(before, id, after), one_line);
  std::vector<Bytes> parts;
  parts.reserve(3);
  parts.push_back(message.frame().part(before));
  parts.push_back(Bytes::copy_of(id));
  parts.push_back(message.frame().part(after));
  return Rope(std::move(parts), one_line);
}

}  // namespace fairlead::rpc
