// The target `stdio:COMMAND …` of a command: how its process is started, and where its stderr is shown.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/common.hpp"
#include "cli/progress_line.hpp"
#include "fairlead/connection/uri.hpp"

namespace fairlead::cli {

struct StdioTargetOptions {
  std::vector<std::string> env;  // "NAME=value"

  void add_to(CLI::App& command);  // --env
  // Returns an error if the target cannot use the options.
  std::optional<Error> problem(const Uri& target) const;
  // Sets the variables of the environment.
  void apply_to(ProcessSpec& process) const;
};

// Returns whether `target` is a process that this program starts.
bool is_process(const Uri& target);

// Returns how the process of `target` is started. With a progress line, the lines that it writes to stderr
// are shown there; otherwise, and at log level info or lower, its stderr is relayed.
ProcessSpec process_spec(const Uri& target, const StdioTargetOptions& options, const CommonOptions& common,
                         const std::shared_ptr<ProgressLine>& progress);
// Applies the same rules for stderr to another process.
void set_stderr(ProcessSpec& process, const CommonOptions& common,
                const std::shared_ptr<ProgressLine>& progress);

// Returns the log of a command with a progress line, which may be null.
Log log_above(const CommonOptions& common, const std::shared_ptr<ProgressLine>& progress);

// Adds the option to change to the error of a timeout that has no remedy, or whose remedy is `--timeout` too.
Error with_timeout_option(Error error, std::chrono::milliseconds timeout);

}  // namespace fairlead::cli
