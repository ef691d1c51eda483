// JSON-RPC error codes, and the one place where kinds of errors become codes.
#pragma once

#include <cstdint>

#include "fairlead/base/error.hpp"

namespace fairlead::rpc {

inline constexpr std::int64_t kParseError = -32700;
inline constexpr std::int64_t kInvalidRequest = -32600;
inline constexpr std::int64_t kMethodNotFound = -32601;
inline constexpr std::int64_t kInvalidParams = -32602;
inline constexpr std::int64_t kInternalError = -32603;

// Application codes of plain JSON-RPC servers, -32000…-32099. MCP connections never use them.
inline constexpr std::int64_t kServerError = -32000;
inline constexpr std::int64_t kProgramNotFound = -32001;
inline constexpr std::int64_t kGitNotFound = -32002;
inline constexpr std::int64_t kObjectNotFound = -32003;
inline constexpr std::int64_t kServerBusy = -32004;
inline constexpr std::int64_t kRequestCancelled = -32005;

// Errors a handler answers with.
Error invalid_request(std::string message);
Error method_not_found(std::string_view method);
Error invalid_params(std::string message);

// What goes on the wire for the problem of a frame or for an error a handler returned: an error that carries
// a code keeps it and its message; invalid input is -32602; everything else is our own affair and becomes a
// bare -32603.
struct WireError {
  std::int64_t code;
  std::string message;
  std::string data;  // raw JSON, empty when absent
};
WireError to_wire(const Error& error);

}  // namespace fairlead::rpc
