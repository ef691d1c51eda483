// The ways a child fails, as codes that stay the same, each with what to do about it (docs/errors.md). An
// error of a child carries them in its detail, next to its command line and last words.
#pragma once

#include <span>
#include <string_view>

namespace fairlead {

struct FailureCode {
  std::string_view code;
  std::string_view remedy;
};

std::span<const FailureCode> failure_codes() noexcept;
// Empty for a code that is none.
std::string_view remedy_for(std::string_view code) noexcept;

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

}  // namespace failure

}  // namespace fairlead
