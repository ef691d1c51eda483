// What every request of the modern era says of itself in _meta, and the codes of MCP's own errors. Private to
// the library: the layers above this one use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fairlead::mcp {

inline constexpr std::string_view kVersionKey = "io.modelcontextprotocol/protocolVersion";
inline constexpr std::string_view kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
inline constexpr std::string_view kClientInfoKey = "io.modelcontextprotocol/clientInfo";
inline constexpr std::string_view kLogLevelKey = "io.modelcontextprotocol/logLevel";
inline constexpr std::string_view kSubscriptionKey = "io.modelcontextprotocol/subscriptionId";

inline constexpr std::int64_t kHeaderMismatch = -32020;
inline constexpr std::int64_t kMissingCapability = -32021;
inline constexpr std::int64_t kUnsupportedVersion = -32022;
inline constexpr std::int64_t kUrlElicitationRequired = -32042;  // 2025-11-25 only

// The completion of a URL elicitation with a longer id is not awaited.
inline constexpr std::size_t kMaxElicitationIdBytes = 1024;

}  // namespace fairlead::mcp
