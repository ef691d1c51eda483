// HttpClientMessage: a JSON-RPC message as StreamableConnection sends it to a server: the body of the POST,
// and the facts that determine the HTTP headers. Private to src/transport.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/limits.hpp"
#include "fairlead/rpc/message.hpp"
#include "fairlead/rpc/rope.hpp"
#include "protocol/encoded_call.hpp"

namespace fairlead::transport {

class HttpClientMessage {
 public:
  HttpClientMessage(rpc::Message message);  // NOLINT: implicit on purpose
  // Converts a serialized message. Parses the rope, unless it is annotated as an mcp::EncodedCall, whose
  // facts are known. Fails with `serialize` if the rope is not a JSON-RPC message. A rope larger than 256 KiB
  // is assumed to be valid JSON.
  static Result<HttpClientMessage> from_rope(const rpc::Rope& rope, const Limits& limits);

  rpc::Kind kind() const noexcept { return message_ ? message_->kind() : rpc::Kind::request; }
  bool is_request() const noexcept { return kind() == rpc::Kind::request; }
  bool is_notification() const noexcept { return kind() == rpc::Kind::notification; }
  bool is_handshake() const noexcept { return is_request() && method() == "initialize"; }
  // Returns the id as JSON text; empty if the message has no id.
  std::string_view id() const noexcept { return message_ ? message_->id() : std::string_view(call_->id); }
  std::string_view method() const noexcept { return message_ ? message_->method() : call_->facts->method; }
  // Returns the revision that a message of the modern era names; nullopt for a message of the legacy era.
  std::optional<std::string_view> modern_revision() const noexcept {
    return modern_revision_ ? std::optional(modern_revision_->view()) : std::nullopt;
  }
  // Returns the value of the Mcp-Name header: the name of a tool or prompt, or the URI of a resource. Returns
  // nullopt if requests of this method have no such header, or if the parameter is not a string.
  std::optional<std::string_view> name_header_value() const noexcept;
  json::View arguments() const noexcept { return facts_ ? facts_->arguments : json::View(); }
  // For a list request: returns whether it requests the first page, that is, has no cursor.
  bool is_first_page() const noexcept { return !facts_ || facts_->cursor.absent(); }

  // Returns the parts of the message; valid until it is moved or destroyed.
  std::span<const Bytes> body() const noexcept {
    return parts_.empty() ? std::span(&only_part_, 1) : std::span(parts_);
  }
  std::size_t size() const noexcept { return size_; }
  // REQUIRES: the message was not converted from an mcp::EncodedCall.
  const rpc::Message& message() const noexcept { return *message_; }

 private:
  HttpClientMessage(const rpc::Rope& rope, std::shared_ptr<const mcp::EncodedCall> call);

  std::optional<rpc::Message> message_;           // nullopt if the message was converted from call_
  std::shared_ptr<const mcp::EncodedCall> call_;  // null if message_ has a value
  std::shared_ptr<const mcp::CallFacts> facts_;   // null unless this is a request or notification
  std::optional<Bytes> modern_revision_;
  Bytes only_part_;           // the body, unless it has several parts
  std::vector<Bytes> parts_;  // the body, if it has several parts
  std::size_t size_ = 0;
};

}  // namespace fairlead::transport
