// JSON-RPC error codes, and the mapping from Error to the error object of a response.
#pragma once

#include <cstdint>

#include "fairlead/base/error.hpp"

namespace fairlead::rpc {

inline constexpr std::int64_t kParseError = -32700;
inline constexpr std::int64_t kInvalidRequest = -32600;
inline constexpr std::int64_t kMethodNotFound = -32601;
inline constexpr std::int64_t kInvalidParams = -32602;
inline constexpr std::int64_t kInternalError = -32603;

// Implementation-defined codes (-32000 to -32099) of plain JSON-RPC servers. On MCP connections these numbers
// have other meanings (docs/errors.md).
inline constexpr std::int64_t kServerError = -32000;
inline constexpr std::int64_t kProgramNotFound = -32001;
inline constexpr std::int64_t kGitNotFound = -32002;
inline constexpr std::int64_t kObjectNotFound = -32003;
inline constexpr std::int64_t kServerBusy = -32004;
inline constexpr std::int64_t kRequestCancelled = -32005;

// Errors for handlers to return.
Error invalid_request(std::string message);
Error method_not_found(std::string_view method);
Error invalid_params(std::string message);

// The members of the `error` object of a response.
struct WireError {
  std::int64_t code;
  std::string message;
  std::string data;  // raw JSON; empty if absent
};
// Converts an error to the error object of a response: the problem of a malformed frame, or an error that a
// handler returned. An error with an `rpc_code` keeps that code and its message. An error of kind validation
// becomes -32602 with its message. All other errors are internal and become -32603 without details.
WireError to_wire(const Error& error);

}  // namespace fairlead::rpc
