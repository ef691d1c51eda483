// StreamableState: the protocol state of an MCP client over HTTP (era, session, annotated tools), and the
// HTTP headers of its messages. An annotated tool has arguments that the client must repeat in Mcp-Param-*
// headers. Does no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/http/headers.hpp"
#include "fairlead/protocol/header_annotations.hpp"
#include "fairlead/rpc/message.hpp"
#include "transport/http_client_message.hpp"

namespace fairlead::transport {

class StreamableState {
 public:
  // Maximum number of annotated tools of a list that are examined, and of annotated tools that are stored.
  static constexpr std::size_t kMaxAnnotatedTools = 10'000;
  explicit StreamableState(const mcp::ListLimits& limits = {}) : limits_(limits) {}

  // Called before a message is sent. Returns whether the message belongs to the modern era; a message that is
  // not a request belongs to the era of the last request. If the message is the `initialize` request of the
  // legacy era, stores it for handshake() and clears the session.
  bool on_send(const HttpClientMessage& message);
  // Returns the headers of the POST with which a message is sent.
  http::Headers headers_for(const HttpClientMessage& message);
  // Returns those of headers_for() that do not depend on the parameters of the message. They stay the same
  // for the method and the modern revision of the message as long as session_version() does.
  http::Headers constant_headers_for(const HttpClientMessage& message) const;
  std::uint64_t session_version() const noexcept { return session_version_; }
  // Returns whether headers_for() contains arguments of the message.
  bool has_argument_headers(const HttpClientMessage& message);
  // Returns the headers of HTTP requests without a message (GET, DELETE): session id and revision.
  http::Headers session_headers() const;

  // Called when the response to `request` has been received. Stores the negotiated revision from the response
  // to initialize, and the annotated tools from the response to tools/list.
  void on_response(const HttpClientMessage& request, const rpc::Message& response);
  // Stores the session id from the response to the handshake. If the id has characters other than visible
  // ASCII, stores nothing and returns false.
  bool set_session_id(std::string_view id);
  // Clears the session id and the negotiated revision.
  void clear_session();

  // Returns whether the last request belonged to the modern era.
  bool modern() const noexcept { return modern_; }
  const std::string& session_id() const noexcept { return session_id_; }
  // Legacy era: returns the negotiated revision; empty before the handshake.
  const std::string& negotiated_revision() const noexcept { return negotiated_revision_; }
  // Legacy era: returns the last `initialize` request, with which the session can be renewed.
  const std::optional<rpc::Message>& handshake() const noexcept { return handshake_; }

 private:
  // A listed tool whose schema may have annotations. The schema is parsed when the tool is first called,
  // because parsing the schemas of a whole list would block the loop.
  struct AnnotatedTool {
    std::string schema;        // text of the schema; empty after it has been parsed
    mcp::HeaderParams params;  // the annotated arguments, after the schema has been parsed
  };

  // Returns the revision in the headers of a message of the modern era; nullopt for the legacy era.
  std::optional<std::string_view> modern_revision_of(const HttpClientMessage& message) const noexcept;
  // Adds the headers that depend on the parameters of the message.
  void add_params_headers(http::Headers& headers, const HttpClientMessage& message);
  void store_tool_annotations(const HttpClientMessage& request, const rpc::Message& response);
  // Returns which arguments of the tool are annotated; null if the tool is not in annotated_tools_. Parses
  // the schema in the first call for the tool.
  mcp::HeaderParams header_params(std::string_view tool);

  bool modern_ = false;
  std::string modern_revision_;  // revision of the last modern request
  std::string session_id_;
  std::string negotiated_revision_;    // legacy era: the negotiated revision
  std::uint64_t session_version_ = 0;  // incremented when session_id_ or negotiated_revision_ changes
  std::optional<rpc::Message> handshake_;
  mcp::ListLimits limits_;
  std::map<std::string, AnnotatedTool, std::less<>> annotated_tools_;  // by name
  std::size_t unparsed_schema_bytes_ = 0;                              // total size of AnnotatedTool::schema
};

}  // namespace fairlead::transport
