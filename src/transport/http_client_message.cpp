#include "transport/http_client_message.hpp"

#include <typeinfo>

#include "protocol/header_values.hpp"
#include "rpc/message_parser.hpp"

namespace fairlead::transport {

namespace {

// A larger rope is not validated, because that would take too long for one turn of the loop.
constexpr std::size_t kMaxValidatedBytes = rpc::MessageParser::kBytesPerStep;

}  // namespace

HttpClientMessage::HttpClientMessage(rpc::Message message) : message_(std::move(message)) {
  if (is_request() || is_notification()) facts_ = mcp::CallFacts::of(*message_);
  if (facts_) {
    if (const std::optional<std::string> revision = facts_->protocol_version.as_string())
      modern_revision_ = Bytes::copy_of(*revision);
  }
  only_part_ = message_->frame();
  size_ = only_part_.size();
}

HttpClientMessage::HttpClientMessage(const rpc::Rope& rope, std::shared_ptr<const mcp::EncodedCall> call)
    : call_(std::move(call)), facts_(call_->facts), size_(rope.size()) {
  if (mcp::is_modern(call_->revision)) modern_revision_ = Bytes::constant(mcp::to_string(call_->revision));
  std::size_t parts = 0;
  rope.each([&](const Bytes& part) {
    if (++parts == 1) only_part_ = part;
  });
  if (parts <= 1) return;
  parts_.reserve(parts);
  rope.each([this](const Bytes& part) { parts_.push_back(part); });
}

Result<HttpClientMessage> HttpClientMessage::from_rope(const rpc::Rope& rope, const Limits& limits) {
  const rpc::Annotation* const annotation = rope.annotation().get();
  if (annotation && typeid(*annotation) == typeid(mcp::EncodedCall))
    return HttpClientMessage(rope, std::static_pointer_cast<const mcp::EncodedCall>(rope.annotation()));
  rpc::Message message = rope.size() > kMaxValidatedBytes
                             ? rpc::Message::parse_trusted(rope.joined(), rope.is_one_line())
                             : rpc::Message::parse(rope.joined(), limits);
  if (message.is(rpc::Kind::malformed)) return Error(ErrorKind::serialize, message.problem().message());
  return HttpClientMessage(std::move(message));
}

std::optional<std::string_view> HttpClientMessage::name_header_value() const noexcept {
  if (!facts_ || mcp::name_header_param(method()).empty()) return std::nullopt;
  return call_ ? std::string_view(call_->target) : facts_->target_text();
}

}  // namespace fairlead::transport
