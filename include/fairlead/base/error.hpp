// Error: why an operation failed: an ErrorKind, a message, and details that only some kinds have.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead {

// By the kind, a program decides how to react; the message tells a person what happened.
// docs/errors.md lists the causes and the remedies of each kind.
enum class ErrorKind : std::uint8_t {
  spawn,                 // a program could not be started
  stdio_unavailable,     // a required standard stream is not open
  io,                    // a read or write failed in the operating system
  serialize,             // an outgoing message is not valid JSON or does not fit into a frame
  parse,                 // the input is not valid JSON
  id_mismatch,           // a response whose id matches no call
  remote,                // the remote peer responded with a JSON-RPC error
  timeout,               // a deadline passed
  cancelled,             // the caller cancelled
  process_exited,        // the child process exited
  closed,                // the connection is closed, by this process or by the remote peer
  frame_too_large,       // a frame exceeds max_frame_bytes or another limit on its size
  resource_exhausted,    // a limit of this process was reached
  connection_failed,     // connecting to an address failed
  invalid_content_type,  // an HTTP response has an unexpected content type
  http_status,           // an HTTP response has an error status
  authorization,         // the caller is not authorized
  validation,            // well-formed input that the protocol, a schema or a rule does not allow
};

std::string_view to_string(ErrorKind kind) noexcept;

// Details that only some kinds have. Allocated separately so that an Error stays small.
struct ErrorDetail {
  std::optional<std::int64_t> rpc_code;             // JSON-RPC code received, or to respond with
  std::string rpc_data;                             // raw JSON of `error.data`; empty if absent
  std::optional<std::chrono::milliseconds> waited;  // timeout: how long the operation waited
  std::optional<int> exit_status;                   // process_exited: the argument of exit()
  std::optional<int> exit_signal;                   // process_exited: the signal that killed the process
  // The first and the last lines that the process wrote to stderr, with a line that says how many are
  // omitted.
  std::vector<std::string> stderr_lines;
  bool stderr_shown = false;              // stderr_lines were also relayed to the stderr of this process
  std::vector<std::string> stdout_lines;  // the same for lines on stdout that are not JSON-RPC messages
  std::optional<int> os_error;            // errno
  bool unsent = false;  // failed call: no byte of the call has reached the remote peer, so a retry is safe
  std::optional<std::chrono::milliseconds> retry_after;  // delay after which a retry may succeed
  std::optional<int> http_status;                        // status of the HTTP response
  // Set for a child process that failed. Secrets are redacted.
  std::string failure_code;  // stable across versions, such as "command_not_found" (docs/errors.md)
  std::string command_line;  // the resolved command and its arguments
  std::string search_path;   // the PATH that was searched for the command
  std::string remedy;        // what the operator can do
  std::string pointer;       // JSON pointer (RFC 6901) of the member of a request that is wrong
};

class [[nodiscard]] Error {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}

  ErrorKind kind() const noexcept { return kind_; }
  // One clear sentence, without the kind's name and without a final full stop.
  const std::string& message() const noexcept { return message_; }
  const ErrorDetail& detail() const noexcept;

  // Returns this error with its detail changed by `edit`.
  template <class Edit>
  Error with(Edit&& edit) && {
    edit(editable_detail());
    return std::move(*this);
  }

  // Returns "kind: message", followed by lines for the command line, PATH, stdout, stderr, code and remedy of
  // the process, if present.
  std::string to_string() const;

  // Returns an error whose message is `operation` and the description of the errno value `os_error`.
  static Error from_errno(ErrorKind kind, std::string_view operation, int os_error);
  // Returns an error of kind timeout: `operation` got no response within `waited`.
  static Error timeout(std::string_view operation, std::chrono::milliseconds waited);
  // Returns a JSON-RPC error: one that a handler responds with, or one received from the remote peer.
  static Error rpc(std::int64_t code, std::string message, std::string data = {});

 private:
  ErrorDetail& editable_detail();

  ErrorKind kind_;
  std::string message_;
  std::shared_ptr<ErrorDetail> detail_;
};

}  // namespace fairlead
