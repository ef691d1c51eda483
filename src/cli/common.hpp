// What all commands share: exit statuses, log options, durations.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

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
  kDone = 0,
  kRemoteError = 1,
  kUsage = 2,
  kNotConnected = 3,
  kTimedOut = 4,
  kProtocolViolated = 5,
};

// The one place where kinds of errors become exit statuses.
int exit_code(const Error& error) noexcept;
// Prints the error to stderr and returns its exit status.
int report(const Error& error);

// The error to report when stdin or stdout was closed before this program started.
std::optional<Error> missing_stdio();
// The number of a standard stream that is closed would go to the next thing that is opened, and what is meant
// for the stream to that. Puts something harmless in its place. To be called before anything is opened.
void fill_standard_streams();

// For commands that start servers: also ends what a server has started if its keeper is killed. Call it
// before anything is started.
void end_orphans_of_killed_keepers(const Log& log);

struct CommonOptions {
  std::string log_level = "info";
  std::string log_format = "text";
  std::string framing = "line";
  std::size_t max_frame_bytes = 0;  // 0: the default
  std::size_t max_noise_frames = Limits().max_noise_frames;

  void add_log_to(CLI::App& command);
  void add_framing_to(CLI::App& command);  // the limit too
  void add_frame_limit_to(CLI::App& command);
  Log log() const;
  rpc::Framing chosen_framing() const;
  Limits limits() const;
};

// Options for addresses of the web.
struct WebOptions {
  std::vector<std::string> headers;  // "Name: value"
  std::string ca_file;
  bool insecure = false;

  void add_to(CLI::App& command);
  void apply_to(transport::ConnectOptions& options) const;
};

// Adds a duration such as 500ms, 30s, 2m (a bare number is seconds) to a command.
void add_duration(CLI::App& command, const std::string& name, std::chrono::milliseconds& value,
                  const std::string& help);

// Adds --socket-mode, the permissions of a listener's Unix socket, to a command.
void add_socket_mode(CLI::App& command, std::optional<unsigned>& mode);

// Reads the argument `name`, which is JSON, or - for stdin. Absent when empty. Kind validation otherwise.
Result<json::Raw> json_argument(std::string_view name, const std::string& given);

// What to tell a user whose command line cannot be parsed: the word that is wrong, and where help is.
std::string usage_message(const CLI::App* program, const CLI::Error& problem);

// One function a command: adds it to the program. `status` becomes the exit status of the command that ran.
void add_rpc(CLI::App& program, int& status);
void add_call(CLI::App& program, int& status);
void add_inspect(CLI::App& program, int& status);
void add_tools(CLI::App& program, int& status);
void add_resources(CLI::App& program, int& status);
void add_prompts(CLI::App& program, int& status);
void add_skills(CLI::App& program, int& status);
void add_terminate(CLI::App& program, int& status);
void add_serve(CLI::App& program, int& status);
void add_demo(CLI::App& program, int& status);
void add_version(CLI::App& program, int& status);

}  // namespace fairlead::cli
