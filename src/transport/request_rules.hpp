// The rules of MCP over HTTP for one request, sans I/O: which era it belongs to, and whether its headers and
// its body agree, in the order in which the protocol wants refusals. Private to the layer.
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

struct Refusal {
  int status = 400;
  std::int64_t code = 0;
  std::string message;
  std::string data{};  // raw JSON, empty when absent
};

// Habits of legacy servers, which their clients know.
inline constexpr std::int64_t kRefused = -32000;
inline constexpr std::int64_t kNoSession = -32001;

// The answer that says so. The id is echoed if there is one; it is never null.
http::Response refuse(const Refusal& refusal, std::string_view id = {});

Refusal shutting_down();

enum class Era : std::uint8_t { legacy, modern };

struct Verdict {
  Era era = Era::legacy;
  std::optional<Refusal> refusal;
};

// The arguments of a tool that travel as headers; null if there is no such tool, or none does.
using HeaderParamsOf = std::function<mcp::HeaderParams(std::string_view tool)>;

// What to do with the message of a POST.
Verdict judge(const http::Headers& headers, const rpc::Message& message, const HeaderParamsOf& params_of);

// Whether the version header names a revision of the legacy era, or there is none. Everything else is modern,
// if only to be told which versions there are.
bool has_legacy_version(const http::Headers& headers);

// What the client takes for an answer. No Accept at all means anything.
struct Accepts {
  bool json = false;
  bool events = false;
};
Accepts accepts_of(const http::Headers& headers);
bool has_json_body(const http::Headers& headers);

// The HTTP status that goes with the answer of a modern request.
int status_of(std::int64_t rpc_code) noexcept;

}  // namespace fairlead::transport
