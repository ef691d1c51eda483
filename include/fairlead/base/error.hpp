// The closed list of ways an operation can fail, and the value that carries one of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead {

// A kind says what the caller can do about it; the message says what happened.
// docs/errors.md lists them with their causes and remedies.
enum class ErrorKind : std::uint8_t {
  spawn,                 // a program could not be started
  stdio_unavailable,     // a standard stream that was needed is not there
  io,                    // the operating system refused a read or a write
  serialize,             // what was to be sent is not valid JSON or cannot be framed
  parse,                 // what came in is not JSON
  id_mismatch,           // an answer that fits no call
  remote,                // the other side answered with a JSON-RPC error
  timeout,               // a deadline passed
  cancelled,             // the caller gave up
  process_exited,        // the child process ended
  closed,                // the connection is closed, by us or by the other side
  frame_too_large,       // a frame over the limit
  resource_exhausted,    // a limit of ours was reached
  connection_failed,     // could not connect
  invalid_content_type,  // an HTTP answer of an unexpected type
  http_status,           // an HTTP answer with an error status
  authorization,         // not allowed
  validation,            // well-formed, but not what the protocol or the schema allows
};

std::string_view to_string(ErrorKind kind) noexcept;

// Facts that belong to some kinds only. Kept apart so that an Error stays small.
struct ErrorDetail {
  std::optional<std::int64_t> rpc_code;            // JSON-RPC code, of the other side or to be answered
  std::string rpc_data;                            // raw JSON of `error.data`, empty when absent
  std::optional<std::chrono::milliseconds> after;  // timeout: how long it waited
  std::optional<int> exit_status;                  // process_exited: exit(n)
  std::optional<int> exit_signal;                  // process_exited: killed by this signal
  std::vector<std::string> stderr_lines;           // last lines the process wrote to stderr
  std::optional<int> os_error;                     // errno
  bool unsent = false;  // a call: certain that the other side has seen nothing of it
  std::optional<std::chrono::milliseconds>
      retry_after;                 // resource_exhausted and the like: worth trying again then
  std::optional<int> http_status;  // of the answer it came with
  // Of a process that failed: a code that stays the same from version to version (docs/errors.md), the
  // command line as it was resolved, the PATH the command was looked for in, and what to do about it. Without
  // secrets.
  std::string code;
  std::string command_line;
  std::string search_path;
  std::string remedy;
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

  // "kind: message"; where there are any, the process's command line, PATH, last words, code and remedy on
  // lines of their own.
  std::string to_string() const;

  static Error from_errno(ErrorKind kind, std::string_view what, int os_error);
  static Error timeout(std::string_view what, std::chrono::milliseconds after);
  // An error a handler answers with, or the one a remote side answered with.
  static Error rpc(std::int64_t code, std::string message, std::string data = {});

 private:
  ErrorDetail& editable_detail();

  ErrorKind kind_;
  std::string message_;
  std::shared_ptr<ErrorDetail> detail_;
};

}  // namespace fairlead
