#include "fairlead/process/failure.hpp"

#include <algorithm>

namespace fairlead {

namespace {

using namespace failure;

// The one place. docs/errors.md has the same table.
constexpr FailureCode kCodes[] = {
    {command_not_found,
     "Install the program, correct its name, or add its directory to the PATH of the server's environment."},
    {not_executable,
     "Make the file executable (chmod +x), and see that the interpreter in its first line exists and that it "
     "was built for this machine."},
    {bad_cwd, "Create the working directory, or correct it; this user must be able to enter it."},
    {bad_spec, "Correct the command line or the environment in the configuration."},
    {arguments_too_long, "Shorten the arguments and the environment; pass large values in a file."},
    {out_of_processes,
     "End what is not needed, or raise the limit of processes (ulimit -u, pids.max, TasksMax)."},
    {out_of_descriptors, "Raise the limit of open files (ulimit -n), or start fewer servers."},
    {out_of_memory, "Raise memory_max or address_space of the server, or give the machine more memory."},
    {secret_unavailable,
     "Set the variable, or make the file readable for this user; references are `${NAME}`, "
     "`${NAME:-default}`, `${secret:NAME}` and `${file:/path}`; write $$ for a dollar."},
    {manifest_unavailable,
     "Name a file that is a manifest or does not exist, on a file system that can be written, owned by this "
     "user."},
    {belt_unavailable,
     "Run on a system that has it (the message says what is missing), or make it best_effort."},
    {keeper_failed,
     "Allow running a program from memory, or set FAIRLEAD_KEEPER to the path of the installed "
     "fairlead-keeper "
     "(libexec/fairlead-keeper) of the same version."},
    {nested_too_deep,
     "See whether a server's command starts the same gateway again: at most max_nesting gateways can be "
     "nested."},
    {spawn_failed, "See the system's error in the message."},
    {exited,
     "Run the command line by hand and read its last lines; a server must stay until its input ends."},
    {killed_by_signal,
     "Look for who sent it: the program's own crash (see its last lines), the out-of-memory killer (see the "
     "system's log), or somebody's kill."},
    {cpu_limit, "Raise cpu_seconds of the server, or find out what keeps it busy."},
    {file_size_limit, "Raise file_bytes of the server, or have it write less."},
    {keeper_died, "Nothing: the next start makes a new keeper. Find out who killed fairlead-keeper."},
    {exited_in_handshake,
     "Run the command line by hand: it ended before it had answered. Its last lines say why, most often a "
     "missing argument, key or package."},
    {handshake_timeout,
     "See whether the command is an MCP server on stdin and stdout, whether it waits for a download or a "
     "login, or give it more time."},
    {handshake_failed,
     "See whether the command is an MCP server, and of a revision that is spoken here: it answered, but not "
     "as one."},
    {noise_on_stdout,
     "The server writes to its stdout what is no message; banners and logs belong on its stderr."},
    {stream_closed, "The server closed its stdin or stdout and went on running; it must keep both open."},
    {spawn_timeout,
     "See whether the program's file system or the way to the address hangs, or give it more time "
     "(clocks.spawn)."},
    {call_timeout,
     "Give the server more time (clocks.idle, clocks.absolute), or find out what it waits for. The call was "
     "cancelled, and the server runs on."},
    {unresponsive,
     "Find out what the server waits for: it ran, and answered neither calls nor a ping (clocks.ping). The "
     "next call starts another."},
    {tool_crashes,
     "Find out why this tool ends the server's process (its last lines say more); other tools of the server "
     "are served. It is tried again after the pause (restart.tool_crash_pause)."},
    {draining,
     "The server was removed, disabled, updated or stopped while the call was under way. Send it again if "
     "that does no harm; calls that take longer need a longer clocks.drain, or drain_grace of the gateway."},
    {server_stopped, "Enable the server in the configuration."},
    {unknown_server, "Correct the name, or add the server to the configuration."},
    {gateway_shut_down, "Try again when the gateway runs again."},
    {resource_exhausted,
     "Try again later (retryAfterMs, where it is known), or raise the limit that the message names."},
    {frame_too_large,
     "Raise max_frame_bytes ([limits] of the gateway's file), or have the sender send less at a time."},
    {connection_failed,
     "See whether the server runs, and whether its address is right and can be reached from this machine."},
    {connection_lost,
     "The connection to the server broke while the call was under way. The next call connects again; see the "
     "server's own log for the reason."},
    {timed_out, "Give the server more time (clocks of the server), or find out what it waits for."},
    {cancelled, "Nothing: the caller gave the call up."},
    {http_status,
     "See whether the url is that of an MCP endpoint, and what the server's own log says about the request."},
    {unauthorized, "Correct the credentials in the headers of the server."},
    {invalid_content_type, "See whether the url is that of an MCP endpoint: it answered, but not as one."},
    {protocol_violation, "The server sent what is not JSON-RPC; see its own log, or update it."},
    {invalid_request, "Correct the request."},
    {invalid_request_state,
     "Send the request again without requestState and inputResponses: a state is for the client and the "
     "request it was "
     "given for, and expires."},
    {io_error, "See the system's error in the message."},
    {server_error, "See the server's own message and log."},
    {too_many_rounds,
     "The server asks for input again and again; see its own log for what it does not accept."},
    {unsupported_by_client, "Use a client that has the capability, or a tool that does not need it."},
    {unknown_name,
     "List again what there is: the server may have changed, or may not have started (see /health)."},
};

}  // namespace

std::span<const FailureCode> failure_codes() noexcept {
  return kCodes;
}

std::string_view remedy_for(std::string_view code) noexcept {
  const auto* found = std::ranges::find(kCodes, code, &FailureCode::code);
  return found == std::end(kCodes) ? std::string_view() : found->remedy;
}

std::string_view failure_code(ErrorKind kind) noexcept {
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
  if (!error.detail().code.empty() && !error.detail().remedy.empty()) return error;
  const std::string_view fallback = code.empty() ? failure_code(error.kind()) : code;
  return std::move(error).with([&](ErrorDetail& detail) {
    if (detail.code.empty()) detail.code = fallback;
    if (detail.remedy.empty()) detail.remedy = remedy_for(detail.code);
  });
}

}  // namespace fairlead
