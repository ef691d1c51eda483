#include "fairlead/process/failure.hpp"

#include <algorithm>

namespace fairlead {

namespace {

using namespace failure;

// The only definition of the remedies. docs/errors.md must have the same table; a test compares them.
constexpr FailureCode kCodes[] = {
    {command_not_found,
     "Install the program, correct its name, or add its directory to the PATH of the server's environment."},
    {not_executable,
     "Make the file executable (chmod +x), and check that the interpreter in its first line exists and that "
     "it was built for this machine."},
    {bad_cwd, "Create the working directory, or correct it; this user must be able to enter it."},
    {bad_spec, "Correct the command line or the environment in the configuration."},
    {arguments_too_long, "Shorten the arguments and the environment; pass large values in a file."},
    {out_of_processes,
     "End processes that are not needed, or raise the limit of processes (ulimit -u, pids.max, TasksMax)."},
    {out_of_descriptors, "Raise the limit of open files (ulimit -n), or start fewer servers."},
    {out_of_memory, "Raise memory_max or address_space of the server, or give the machine more memory."},
    {secret_unavailable,
     "Set the variable, or make the file readable for this user; references are `${NAME}`, "
     "`${NAME:-default}`, `${secret:NAME}` and `${file:/path}`; write $$ for a dollar."},
    {manifest_unavailable,
     "Name a file that is a manifest or does not exist, on a file system that can be written, owned by this "
     "user."},
    {belt_unavailable,
     "Run on a system that supports the containment measure (the message says what is missing), or set it to "
     "best_effort."},
    {keeper_failed,
     "Allow running a program from memory, or set FAIRLEAD_KEEPER to the path of the installed "
     "fairlead-keeper "
     "(libexec/fairlead-keeper) of the same version."},
    {nested_too_deep,
     "Check whether a server's command starts the same gateway again: at most max_nesting gateways can be "
     "nested."},
    {spawn_failed, "See the system's error in the message."},
    {exited,
     "Run the command line by hand and read its last lines; a server must run until its stdin is closed."},
    {killed_by_signal,
     "Find out what sent the signal: a crash of the program itself (see its last lines), the out-of-memory "
     "killer (see the system's log), or another process."},
    {cpu_limit, "Raise cpu_seconds of the server, or find out what keeps it busy."},
    {file_size_limit, "Raise file_bytes of the server, or have it write less."},
    {keeper_died,
     "No action is needed: the next start creates a new keeper. Find out which process killed "
     "fairlead-keeper."},
    {exited_in_handshake,
     "Run the command line by hand: it ended before it had answered. Its last lines say why, most often a "
     "missing argument, key or package."},
    {handshake_timeout,
     "Check whether the command is an MCP server on stdin and stdout and whether it waits for a download or "
     "a login, or give it more time."},
    {handshake_failed,
     "Check whether the command is an MCP server of a supported revision: it answered, but not as one."},
    {noise_on_stdout,
     "The server writes text that is not a message to its stdout; banners and logs belong on its stderr."},
    {stream_closed, "The server closed its stdin or stdout and continued to run; it must keep both open."},
    {spawn_timeout,
     "Check whether the program's file system or the route to the address hangs, or give it more time "
     "(clocks.spawn)."},
    {call_timeout,
     "Give the server more time (clocks.idle, clocks.absolute), or find out what it waits for. The call was "
     "cancelled, and the server continues to run."},
    {unresponsive,
     "Find out what the server waits for: it ran, and answered neither calls nor a ping (clocks.ping). The "
     "next call starts a new process."},
    {tool_crashes,
     "Find out why this tool ends the server's process (see its last lines). The other tools of the server "
     "are available, and this one is tried again after the pause (restart.tool_crash_pause)."},
    {draining,
     "The server was removed, disabled, updated or stopped during the call. Retry the call if it is safe to "
     "repeat; calls that take longer need a longer clocks.drain, or drain_grace of the gateway."},
    {server_stopped, "Enable the server in the configuration."},
    {unknown_server, "Correct the name, or add the server to the configuration."},
    {unknown_endpoint, "Correct the URL, or use a token that may use the endpoint."},
    {gateway_shut_down, "Try again when the gateway runs again."},
    {resource_exhausted,
     "Try again later (retryAfterMs, where it is known), or raise the limit that the message names."},
    {frame_too_large,
     "Raise max_frame_bytes ([limits] of the gateway's file), or have the sender send less at a time."},
    {connection_failed,
     "Check whether the server runs, and whether its address is correct and reachable from this machine."},
    {connection_lost,
     "The connection to the server was lost during the call. The next call connects again; see the server's "
     "own log for the reason."},
    {timed_out, "Give the server more time (clocks of the server), or find out what it waits for."},
    {cancelled, "No action is needed: the caller cancelled the call."},
    {http_status,
     "Check whether the url is that of an MCP endpoint, and what the server's own log says about the "
     "request."},
    {unauthorized, "Correct the credentials in the headers of the server."},
    {invalid_content_type,
     "Check whether the url is that of an MCP endpoint: the server answered, but not as one."},
    {protocol_violation, "The server sent data that is not JSON-RPC; see its own log, or update it."},
    {invalid_request, "Correct the request."},
    {invalid_request_state,
     "Send the request again without requestState and inputResponses: a state is valid only for the client "
     "and the request for which it was issued, and it expires."},
    {io_error, "See the system's error in the message."},
    {server_error, "See the server's own message and log."},
    {too_many_rounds, "The server requests input repeatedly; see its own log for what it does not accept."},
    {unsupported_by_client, "Use a client that has the capability, or a tool that does not need it."},
    {unknown_name,
     "Request the list again: the server may have changed, or may not have started (see /health)."},
};

}  // namespace

std::span<const FailureCode> failure_codes() noexcept {
  return kCodes;
}

std::string_view remedy_for(std::string_view code) noexcept {
  const auto* found = std::ranges::find(kCodes, code, &FailureCode::code);
  return found == std::end(kCodes) ? std::string_view() : found->remedy;
}

std::string_view default_failure_code(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::spawn: return spawn_failed;
    case ErrorKind::stdio_unavailable:
    case ErrorKind::io: return io_error;
    case ErrorKind::serialize:
    case ErrorKind::validation: return invalid_request;
    case ErrorKind::parse:
    case ErrorKind::id_mismatch: return protocol_violation;
    case ErrorKind::remote: return server_error;
    case ErrorKind::timeout: return timed_out;
    case ErrorKind::cancelled: return failure::cancelled;
    case ErrorKind::process_exited: return exited;
    case ErrorKind::closed: return connection_lost;
    case ErrorKind::frame_too_large: return failure::frame_too_large;
    case ErrorKind::resource_exhausted: return failure::resource_exhausted;
    case ErrorKind::connection_failed: return failure::connection_failed;
    case ErrorKind::invalid_content_type: return failure::invalid_content_type;
    case ErrorKind::http_status: return failure::http_status;
    case ErrorKind::authorization: return unauthorized;
  }
  return server_error;
}

Error with_failure_code(Error error, std::string_view code) {
  if (!error.detail().failure_code.empty() && !error.detail().remedy.empty()) return error;
  const std::string_view fallback = code.empty() ? default_failure_code(error.kind()) : code;
  return std::move(error).with([&](ErrorDetail& detail) {
    if (detail.failure_code.empty()) detail.failure_code = fallback;
    if (detail.remedy.empty()) detail.remedy = remedy_for(detail.failure_code);
  });
}

}  // namespace fairlead
