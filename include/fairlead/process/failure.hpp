// FailureCode: stable codes for the failures of servers, each with a remedy (docs/errors.md). Errors carry
// both in their detail; errors about a child process also carry its command line and its last stderr lines.
#pragma once

#include <span>
#include <string_view>

#include "fairlead/base/error.hpp"

namespace fairlead {

struct FailureCode {
  std::string_view code;
  std::string_view remedy;
};

// Returns all codes.
std::span<const FailureCode> failure_codes() noexcept;
// Returns the remedy for a failure code, or an empty text if the code is unknown.
std::string_view remedy_for(std::string_view code) noexcept;

// Returns the code for errors of this kind that have no more specific code.
std::string_view default_failure_code(ErrorKind kind) noexcept;
// Returns `error` with a code and its remedy. An existing code is kept; otherwise the error gets `code`, or
// the code of its kind if `code` is empty.
Error with_failure_code(Error error, std::string_view code = {});

// The codes by name. A comment is given where the name does not say when an error gets the code.
namespace failure {

inline constexpr std::string_view command_not_found = "command_not_found";
inline constexpr std::string_view not_executable = "not_executable";
inline constexpr std::string_view bad_cwd = "bad_cwd";
inline constexpr std::string_view bad_spec = "bad_spec";
inline constexpr std::string_view arguments_too_long = "arguments_too_long";
inline constexpr std::string_view out_of_processes = "out_of_processes";
inline constexpr std::string_view out_of_descriptors = "out_of_descriptors";
inline constexpr std::string_view out_of_memory = "out_of_memory";
inline constexpr std::string_view secret_unavailable = "secret_unavailable";
inline constexpr std::string_view manifest_unavailable = "manifest_unavailable";
// A required containment measure is unavailable. (The code has an earlier name of containment measures.)
inline constexpr std::string_view belt_unavailable = "belt_unavailable";
// The keeper program could not be started, or FAIRLEAD_KEEPER names another program or version.
inline constexpr std::string_view keeper_failed = "keeper_failed";
// This process already runs below max_nesting gateways.
inline constexpr std::string_view nested_too_deep = "nested_too_deep";
// A start failed for a reason without a code of its own.
inline constexpr std::string_view spawn_failed = "spawn_failed";
// The process called exit(). During the MCP handshake, the code is exited_in_handshake.
inline constexpr std::string_view exited = "exited";
inline constexpr std::string_view killed_by_signal = "killed_by_signal";
inline constexpr std::string_view cpu_limit = "cpu_limit";
inline constexpr std::string_view file_size_limit = "file_size_limit";
// The process was killed, or not started, because its keeper was killed.
inline constexpr std::string_view keeper_died = "keeper_died";
inline constexpr std::string_view exited_in_handshake = "exited_in_handshake";
inline constexpr std::string_view handshake_timeout = "handshake_timeout";
inline constexpr std::string_view handshake_failed = "handshake_failed";
// A child process wrote malformed frames to its stdout.
inline constexpr std::string_view noise_on_stdout = "noise_on_stdout";
// The server closed its stdin or stdout and continued to run.
inline constexpr std::string_view stream_closed = "stream_closed";
inline constexpr std::string_view spawn_timeout = "spawn_timeout";
inline constexpr std::string_view call_timeout = "call_timeout";
inline constexpr std::string_view unresponsive = "unresponsive";
// The called tool is refused for a while, because its calls ended the process too often in a row.
inline constexpr std::string_view tool_crashes = "tool_crashes";
// The server was removed, disabled, updated or stopped, and the call did not end within the drain timeout;
// or the pool or the gateway is shutting down and accepts no call.
inline constexpr std::string_view draining = "draining";
// The server is disabled, or was retired before it was started for the call.
inline constexpr std::string_view server_stopped = "server_stopped";
inline constexpr std::string_view unknown_server = "unknown_server";
inline constexpr std::string_view unknown_endpoint = "unknown_endpoint";
inline constexpr std::string_view gateway_shut_down = "gateway_shut_down";
inline constexpr std::string_view resource_exhausted = "resource_exhausted";
inline constexpr std::string_view frame_too_large = "frame_too_large";
inline constexpr std::string_view connection_failed = "connection_failed";
inline constexpr std::string_view connection_lost = "connection_lost";
// A timeout that has none of the codes spawn_timeout, handshake_timeout and call_timeout.
inline constexpr std::string_view timed_out = "timed_out";
inline constexpr std::string_view cancelled = "cancelled";
inline constexpr std::string_view http_status = "http_status";
inline constexpr std::string_view unauthorized = "unauthorized";
inline constexpr std::string_view invalid_content_type = "invalid_content_type";
inline constexpr std::string_view protocol_violation = "protocol_violation";
inline constexpr std::string_view invalid_request = "invalid_request";
inline constexpr std::string_view invalid_request_state = "invalid_request_state";
inline constexpr std::string_view io_error = "io_error";
// The server responded with an error.
inline constexpr std::string_view server_error = "server_error";
// The server requested input in too many rounds of one call.
inline constexpr std::string_view too_many_rounds = "too_many_rounds";
inline constexpr std::string_view unsupported_by_client = "unsupported_by_client";
// No tool, prompt or resource has the requested name.
inline constexpr std::string_view unknown_name = "unknown_name";

}  // namespace failure

}  // namespace fairlead
