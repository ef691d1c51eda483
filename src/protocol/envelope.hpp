// The `_meta` keys of requests and notifications of the modern era (the envelope, see docs/glossary.md), and
// the error codes that MCP defines. Private to the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fairlead::mcp {

inline constexpr std::string_view kVersionKey = "io.modelcontextprotocol/protocolVersion";
inline constexpr std::string_view kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
inline constexpr std::string_view kClientInfoKey = "io.modelcontextprotocol/clientInfo";
inline constexpr std::string_view kServerInfoKey = "io.modelcontextprotocol/serverInfo";  // in results
inline constexpr std::string_view kLogLevelKey = "io.modelcontextprotocol/logLevel";
inline constexpr std::string_view kSubscriptionKey = "io.modelcontextprotocol/subscriptionId";

// Error codes.
inline constexpr std::int64_t kHeaderMismatch = -32020;
inline constexpr std::int64_t kMissingCapability = -32021;
inline constexpr std::int64_t kUnsupportedVersion = -32022;
inline constexpr std::int64_t kUrlElicitationRequired = -32042;  // revision 2025-11-25 only

// A URL elicitation with a longer id is not recorded, so the notification of its completion is not matched
// with it.
inline constexpr std::size_t kMaxElicitationIdBytes = 1024;

}  // namespace fairlead::mcp
