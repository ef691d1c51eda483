// OutgoingMessage: a message on its way to a server over HTTP, and what the transport has to know of it.
// Private to the layer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/limits.hpp"
#include "fairlead/rpc/message.hpp"
#include "fairlead/rpc/rope.hpp"
#include "protocol/encoded_call.hpp"

namespace fairlead::transport {

class OutgoingMessage {
 public:
  OutgoingMessage(rpc::Message message);  // NOLINT: a message is one
  // Reads the rope, unless it is an encoded call, of which all is known. Fails with kind serialize for what
  // is no message. One of more than 256 KiB is trusted to be valid JSON.
  static Result<OutgoingMessage> of(const rpc::Rope& rope, const Limits& limits);

  rpc::Kind kind() const noexcept { return call_ ? rpc::Kind::request : message_.kind(); }
  bool is_request() const noexcept { return kind() == rpc::Kind::request; }
  bool is_notification() const noexcept { return kind() == rpc::Kind::notification; }
  bool is_handshake() const noexcept { return is_request() && method() == "initialize"; }
  // As spelled; empty if there is none.
  std::string_view id() const noexcept { return call_ ? std::string_view(call_->id) : message_.id(); }
  std::string_view method() const noexcept { return call_ ? call_->facts->method : message_.method(); }
  // The revision that a message of the modern era says it is of.
  std::optional<std::string> version() const;
  // What Mcp-Name repeats; nullopt if that is no string.
  std::optional<std::string_view> target() const noexcept;
  json::View arguments() const noexcept { return facts_ ? facts_->arguments : json::View(); }
  // Whether it asks for a list from its beginning.
  bool is_first_page() const noexcept { return !facts_ || facts_->cursor.absent(); }

  const std::vector<Bytes>& body() const noexcept { return body_; }
  std::size_t size() const noexcept { return size_; }
  // The message itself. REQUIRES: it is no encoded call.
  const rpc::Message& message() const noexcept { return message_; }

 private:
  OutgoingMessage(const rpc::Rope& rope, std::shared_ptr<const mcp::EncodedCall> call);

  rpc::Message message_;
  std::shared_ptr<const mcp::EncodedCall> call_;  // null: message_ is what is sent
  std::shared_ptr<const mcp::CallFacts> facts_;   // of a request or notification
  std::vector<Bytes> body_;
  std::size_t size_ = 0;
};

}  // namespace fairlead::transport
