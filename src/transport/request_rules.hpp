// Rules of MCP over HTTP for one request: which era the request belongs to (see docs/glossary.md), and
// whether its headers match its body. If several rules are violated, the error is the one that the protocol
// prescribes. Does no I/O. Private to src/transport.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/http/server.hpp"
#include "fairlead/protocol/header_annotations.hpp"
#include "fairlead/rpc/message.hpp"

namespace fairlead::transport {

// The rejection of a request: an HTTP status and a JSON-RPC error.
struct Refusal {
  int http_status = 400;
  std::int64_t rpc_code = 0;
  std::string message;
  std::string data{};  // `data` of the error as JSON text; empty: none
};

// Error codes that legacy servers use by convention; their clients recognize them.
inline constexpr std::int64_t kRefused = -32000;
inline constexpr std::int64_t kSessionNotFound = -32001;

// Returns the HTTP response for a refusal. `id` is the id of the rejected request; the body of the response
// has no id if `id` is empty or null.
http::Response to_response(const Refusal& refusal, std::string_view id = {});

Refusal session_not_found_refusal();
Refusal shutting_down_refusal();

enum class Era : std::uint8_t { legacy, modern };

// The era of a message, and the refusal if the message is rejected.
struct Classification {
  Era era = Era::legacy;
  std::optional<Refusal> refusal;
};

// Returns which arguments of a tool the client must repeat in headers; null if the tool is unknown or has no
// such arguments.
using HeaderParamsLookup = std::function<mcp::HeaderParams(std::string_view tool)>;

// Returns whether MCP-Protocol-Version is absent or names a revision of the legacy era. An unknown revision
// counts as modern, so that the request is rejected with an error that lists the supported revisions.
bool allows_legacy_era(const http::Headers& headers);

// The media types that the client accepts. Without an Accept header it accepts both.
struct AcceptedTypes {
  bool json = false;    // application/json
  bool events = false;  // text/event-stream
};
AcceptedTypes accepted_types(const http::Headers& headers);
// Returns whether Content-Type is application/json.
bool has_json_body(const http::Headers& headers);

// A header that may occur at most once. `value` points into the headers.
struct SingleHeader : http::Headers::Lookup {
  SingleHeader(const http::Headers& headers, std::string_view name) : Lookup(headers.lookup(name)) {}
  bool is(std::string_view expected) const noexcept { return count == 1 && value == expected; }
};

// What the headers of a request say about MCP. Found once for all requests of a connection that have the same
// head. Valid as long as the headers.
struct HeaderFacts final : http::HeadAttachment {
  explicit HeaderFacts(const http::Headers& request_headers);
  // Returns the facts that are attached to the request, or finds and attaches them.
  static const HeaderFacts& of(const http::Request& request);

  const http::Headers& headers;
  SingleHeader version;
  SingleHeader method;
  SingleHeader name;
  SingleHeader session;
  std::optional<std::string> decoded_name;  // nullopt if there is no name, or if it is malformed
  AcceptedTypes accepted_types;
  bool has_json_body;
  bool allows_legacy_era;
  bool names_modern_revision;
};

// Classifies the message of a POST and checks it against the headers.
Classification classify(const HeaderFacts& headers, const rpc::Message& message,
                        const HeaderParamsLookup& header_params);

// Returns the HTTP status of the response to a request of the modern era that fails with this JSON-RPC error
// code.
int http_status_for(std::int64_t rpc_code) noexcept;

}  // namespace fairlead::transport
