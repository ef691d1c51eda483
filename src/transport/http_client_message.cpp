#include "transport/http_client_message.hpp"

#include "protocol/header_values.hpp"
#include "rpc/message_parser.hpp"

namespace fairlead::transport {

namespace {

// A larger rope is not validated, because that would take too long for one turn of the loop.
constexpr std::size_t kMaxValidatedBytes = rpc::MessageParser::kBytesPerStep;

}  // namespace

HttpClientMessage::HttpClientMessage(rpc::Message message) : message_(std::move(message)) {
  if (is_request() || is_notification()) facts_ = mcp::CallFacts::of(message_);
  body_.push_back(message_.frame());
  size_ = message_.frame().size();
}

HttpClientMessage::HttpClientMessage(const rpc::Rope& rope, std::shared_ptr<const mcp::EncodedCall> call)
    : call_(std::move(call)), facts_(call_->facts), size_(rope.size()) {
  std::size_t parts = 0;
  rope.each([&parts](const Bytes&) { ++parts; });
  body_.reserve(parts);
  rope.each([this](const Bytes& part) { body_.push_back(part); });
}

Result<HttpClientMessage> HttpClientMessage::from_rope(const rpc::Rope& rope, const Limits& limits) {
  if (auto call = std::dynamic_pointer_cast<const mcp::EncodedCall>(rope.annotation()))
    return HttpClientMessage(rope, std::move(call));
  rpc::Message message = rope.size() > kMaxValidatedBytes
                             ? rpc::Message::parse_trusted(rope.joined(), rope.is_one_line())
                             : rpc::Message::parse(rope.joined(), limits);
  if (message.is(rpc::Kind::malformed)) return Error(ErrorKind::serialize, message.problem().message());
  return HttpClientMessage(std::move(message));
}

std::optional<std::string> HttpClientMessage::modern_revision() const {
  if (!call_) return facts_ ? facts_->protocol_version.as_string() : std::nullopt;
  if (!mcp::is_modern(call_->revision)) return std::nullopt;
  return std::string(mcp::to_string(call_->revision));
}

std::optional<std::string_view> HttpClientMessage::name_header_value() const noexcept {
  if (!facts_ || mcp::name_header_param(method()).empty()) return std::nullopt;
  return call_ ? std::string_view(call_->target) : facts_->target_text();
}

}  // namespace fairlead::transport
