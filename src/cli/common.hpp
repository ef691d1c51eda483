// Shared by all commands: exit statuses, common options, argument parsing, error reports.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/read_file.hpp"
#include "fairlead/base/error.hpp"
#include "fairlead/base/limits.hpp"
#include "fairlead/base/log.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/rpc/framing.hpp"
#include "fairlead/transport/connect.hpp"

namespace CLI {
class App;
class Error;
}  // namespace CLI

namespace fairlead::cli {

enum ExitCode : int {
  kSuccess = 0,
  kRemoteError = 1,
  kUsageError = 2,
  kNotConnected = 3,
  kTimedOut = 4,
  kProtocolViolated = 5,
  kOutputClosed = 141,  // the reader of stdout has closed the pipe; the status of a process ended by SIGPIPE
};

// Returns the exit status for the kind of an error (docs/errors.md).
int exit_code(const Error& error) noexcept;
// Prints the error to stderr and returns its exit status.
int report(const Error& error);

// Returns an error if stdin or stdout was closed when this process started.
std::optional<Error> missing_stdio_error();
// Opens /dev/null for each standard stream that is closed, so that reading stdin and writing stdout still
// fail. Otherwise the next file or socket that the process opens would get the descriptor of that stream, and
// output for the stream would go to it. Called before anything else is opened.
void open_closed_standard_streams();

// Makes this process a subreaper, so that the descendants of a server are ended even if the keeper (the
// helper process that owns the children) is killed. For commands that start servers; called before any is
// started.
void enable_orphan_cleanup(const Log& log);

struct CommonOptions {
  std::string log_level = "info";
  std::string log_format = "text";
  std::string framing = "line";
  std::size_t max_frame_bytes = 0;  // 0: the default of Limits
  std::size_t max_noise_frames = Limits().max_noise_frames;

  void add_log_to(CLI::App& command);
  void add_framing_to(CLI::App& command);  // includes the options of add_frame_limit_to()
  void add_frame_limit_to(CLI::App& command);
  Log log() const;
  Log log_to(Log::Sink sink) const;  // the same, but writes the lines to `sink`
  rpc::Framing selected_framing() const;
  Limits limits() const;
};

// Options for targets with an HTTP or WebSocket URL.
struct WebOptions {
  std::vector<std::string> headers;  // "Name: value"
  std::string ca_file;               // CA certificates to trust in addition to those of the system
  bool insecure = false;             // the server's certificate is not verified

  void add_to(CLI::App& command);
  void apply_to(transport::ConnectOptions& options) const;
};

// Adds an option for a duration such as 500ms, 30s or 2m (a bare number is seconds) to a command.
void add_duration(CLI::App& command, const std::string& name, std::chrono::milliseconds& value,
                  const std::string& help);

// Adds --timeout to a command. 0 means no limit: `value` is kNoTimeout then.
inline constexpr std::chrono::milliseconds kNoTimeout = std::chrono::hours(24 * 3650);
void add_timeout(CLI::App& command, std::chrono::milliseconds& value, const std::string& help);

// Adds --socket-mode, the permissions of the Unix socket of a listener, to a command.
void add_socket_mode(CLI::App& command, std::optional<unsigned>& mode);

// Reads stdin to its end. Fails with `validation` if it has more bytes than `limit`, and with `io`.
Result<std::string> read_stdin(FileLimit limit);

// Parses the argument `name`, which is JSON, or "-" to read JSON from stdin. Returns an absent value if the
// argument is empty. Fails with `validation` if the text is not JSON.
Result<json::Raw> parse_json_argument(std::string_view name, const std::string& given);

// Returns the message for a command line that cannot be parsed: the problem, and the --help command to run.
std::string usage_message(const CLI::App* program, const CLI::Error& problem);
// Parses the command line and runs the chosen command, which sets `status`. Prints what --help and --version
// request, and the message for a command line that cannot be parsed. Returns the exit status of the program,
// which includes that of writing to stdout.
int run_program(CLI::App& program, int argc, char** argv, const int& status);

// Each of these adds one command to the program. `status` is set to the exit status of the command that runs.
void add_rpc(CLI::App& program, int& status);
void add_call(CLI::App& program, int& status);
void add_inspect(CLI::App& program, int& status);
void add_tools(CLI::App& program, int& status);
void add_resources(CLI::App& program, int& status);
void add_prompts(CLI::App& program, int& status);
void add_skills(CLI::App& program, int& status);
void add_terminate(CLI::App& program, int& status);
void add_connect(CLI::App& program, int& status);
void add_secrets(CLI::App& program, int& status);
void add_serve(CLI::App& program, int& status);
void add_demo(CLI::App& program, int& status);
void add_version(CLI::App& program, int& status);
void add_status(CLI::App& program, int& status);
void add_servers(CLI::App& program, int& status);
void add_endpoints(CLI::App& program, int& status);
void add_accounts(CLI::App& program, int& status);  // users and groups
void add_tokens(CLI::App& program, int& status);
void add_config(CLI::App& program, int& status);
void add_drift(CLI::App& program, int& status);
void add_contexts(CLI::App& program, int& status);
void add_completion(CLI::App& program, int& status);
void add_man(CLI::App& program, int& status);
void add_help(CLI::App& program, int& status);

}  // namespace fairlead::cli
