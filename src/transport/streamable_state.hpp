// StreamableState: what a client must remember of the messages it sends and receives over HTTP, and the
// headers that follow from it. Does no I/O.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/http/headers.hpp"
#include "fairlead/protocol/header_annotations.hpp"
#include "fairlead/rpc/message.hpp"
#include "transport/outgoing_message.hpp"

namespace fairlead::transport {

class StreamableState {
 public:
  // Bounds the tools of a list that are read for annotations, and those whose annotations are remembered.
  static constexpr std::size_t kMostTools = 10'000;
  explicit StreamableState(const mcp::ListLimits& limits = {}) : limits_(limits) {}

  // A message is about to leave: whether it is one of the modern era. The handshake begins a session anew.
  bool sending(const OutgoingMessage& message);
  // The headers it is sent with.
  http::Headers headers_for(const OutgoingMessage& message);
  // Those of the session, for requests that carry no message (GET, DELETE).
  http::Headers session_headers() const;

  // The answer to a request has come: remembers the revision that was agreed on, and which arguments of
  // listed tools are headers.
  void answered(const OutgoingMessage& request, const rpc::Message& answer);
  // The head of the answer to the handshake names the session. False when that is no name for one.
  bool name_session(std::string_view id);
  // The server has forgotten the session.
  void forget_session();

  bool modern() const noexcept { return modern_; }
  const std::string& session() const noexcept { return session_; }
  // Legacy era: the revision the handshake has agreed on; empty before.
  const std::string& revision() const noexcept { return agreed_version_; }
  // Legacy era: the handshake, to begin the session once more.
  const std::optional<rpc::Message>& handshake() const noexcept { return handshake_; }

 private:
  // A listed tool whose schema may have annotations. They are read when it is first called: reading those of
  // a whole list at once would hold the loop.
  struct AnnotatedTool {
    std::string schema;  // empty once it has been read
    mcp::HeaderParams params;
  };

  void add_modern(http::Headers& headers, const OutgoingMessage& message, std::string_view version);
  void learn_tools(const OutgoingMessage& request, const rpc::Message& answer);
  mcp::HeaderParams params_of(std::string_view tool);

  bool modern_ = false;
  std::string modern_version_;  // of the last request
  std::string session_;
  std::string agreed_version_;  // legacy era
  std::optional<rpc::Message> handshake_;
  mcp::ListLimits limits_;
  std::map<std::string, AnnotatedTool, std::less<>> annotated_;  // by name
  std::size_t annotated_bytes_ = 0;                              // of their schemas
};

}  // namespace fairlead::transport
