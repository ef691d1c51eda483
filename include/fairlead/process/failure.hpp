// The failures of servers as stable codes, each with a remedy (docs/errors.md). Errors carry both in their
// detail; errors of a child process also carry its command line and the last lines of its stderr.
#pragma once

#include <span>
#include <string_view>

#include "fairlead/base/error.hpp"

namespace fairlead {

struct FailureCode {
  std::string_view code;
  std::string_view remedy;
};

std::span<const FailureCode> failure_codes() noexcept;
// Empty for a code that is none.
std::string_view remedy_for(std::string_view code) noexcept;

// The code of an error of this kind that has no more specific one.
std::string_view failure_code(ErrorKind kind) noexcept;
// Returns `error` with a code and its remedy. An error that has a code keeps it; otherwise it gets `code`, or
// the code of its kind if `code` is empty.
Error with_failure_code(Error error, std::string_view code = {});

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
inline constexpr std::string_view belt_unavailable = "belt_unavailable";
inline constexpr std::string_view keeper_failed = "keeper_failed";
inline constexpr std::string_view nested_too_deep = "nested_too_deep";
inline constexpr std::string_view spawn_failed = "spawn_failed";
inline constexpr std::string_view exited = "exited";
inline constexpr std::string_view killed_by_signal = "killed_by_signal";
inline constexpr std::string_view cpu_limit = "cpu_limit";
inline constexpr std::string_view file_size_limit = "file_size_limit";
inline constexpr std::string_view keeper_died = "keeper_died";
inline constexpr std::string_view exited_in_handshake = "exited_in_handshake";
inline constexpr std::string_view handshake_timeout = "handshake_timeout";
inline constexpr std::string_view handshake_failed = "handshake_failed";
inline constexpr std::string_view noise_on_stdout = "noise_on_stdout";
inline constexpr std::string_view stream_closed = "stream_closed";
inline constexpr std::string_view spawn_timeout = "spawn_timeout";
inline constexpr std::string_view call_timeout = "call_timeout";
inline constexpr std::string_view unresponsive = "unresponsive";
inline constexpr std::string_view tool_crashes = "tool_crashes";
inline constexpr std::string_view draining = "draining";
inline constexpr std::string_view server_stopped = "server_stopped";
inline constexpr std::string_view unknown_server = "unknown_server";
inline constexpr std::string_view gateway_shut_down = "gateway_shut_down";
inline constexpr std::string_view resource_exhausted = "resource_exhausted";
inline constexpr std::string_view frame_too_large = "frame_too_large";
inline constexpr std::string_view connection_failed = "connection_failed";
inline constexpr std::string_view connection_lost = "connection_lost";
inline constexpr std::string_view timed_out = "timed_out";
inline constexpr std::string_view cancelled = "cancelled";
inline constexpr std::string_view http_status = "http_status";
inline constexpr std::string_view unauthorized = "unauthorized";
inline constexpr std::string_view invalid_content_type = "invalid_content_type";
inline constexpr std::string_view protocol_violation = "protocol_violation";
inline constexpr std::string_view invalid_request = "invalid_request";
inline constexpr std::string_view invalid_request_state = "invalid_request_state";
inline constexpr std::string_view io_error = "io_error";
inline constexpr std::string_view server_error = "server_error";
inline constexpr std::string_view too_many_rounds = "too_many_rounds";
inline constexpr std::string_view unsupported_by_client = "unsupported_by_client";
inline constexpr std::string_view unknown_name = "unknown_name";

}  // namespace failure

}  // namespace fairlead
