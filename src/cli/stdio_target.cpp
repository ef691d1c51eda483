#include "cli/stdio_target.hpp"

#include <CLI/CLI.hpp>

#include "base/printable.hpp"
#include "fairlead/base/duration.hpp"

namespace fairlead::cli {

namespace {

std::string check_assignment(const std::string& text) {
  const std::size_t equals = text.find('=');
  const bool valid = equals != std::string::npos && equals > 0;
  return valid ? std::string() : "`" + text + "` is not a variable such as NAME=value";
}

}  // namespace

void StdioTargetOptions::add_to(CLI::App& command) {
  command
      .add_option("--env", env,
                  "A variable for the environment of a server that this command starts, as NAME=value; "
                  "repeatable")
      ->type_name("NAME=VALUE")
      ->take_all()
      ->allow_extra_args(false)
      ->check(check_assignment);
}

std::optional<Error> StdioTargetOptions::problem(const Uri& target) const {
  if (env.empty() || is_process(target)) return std::nullopt;
  return Error(ErrorKind::validation, "--env is allowed only for a `stdio:` server that this command starts");
}

void StdioTargetOptions::apply_to(ProcessSpec& process) const {
  for (const std::string& assignment : env) {
    const std::size_t equals = assignment.find('=');
    process.env[assignment.substr(0, equals)] = assignment.substr(equals + 1);
  }
}

bool is_process(const Uri& target) {
  return target.scheme == Uri::Scheme::stdio && !target.argv.empty();
}

ProcessSpec process_spec(const Uri& target, const StdioTargetOptions& options, const CommonOptions& common,
                         const std::shared_ptr<ProgressLine>& progress) {
  ProcessSpec process;
  process.command = target.argv.front();
  process.args.assign(target.argv.begin() + 1, target.argv.end());
  options.apply_to(process);
  set_stderr(process, common, progress);
  return process;
}

void set_stderr(ProcessSpec& process, const CommonOptions& common,
                const std::shared_ptr<ProgressLine>& progress) {
  const std::string& level = common.log_level;
  process.stderr_mode = StderrMode::relay;
  if (!progress) return;
  const bool verbose = level == "info" || level == "debug" || level == "trace";
  process.stderr_mode = StderrMode::discard;
  process.on_stderr_line = [weak = std::weak_ptr<ProgressLine>(progress), verbose](std::string_view line) {
    const std::shared_ptr<ProgressLine> shown = weak.lock();
    if (!shown) return;
    if (verbose) return shown->write_above(printable_line(line) + "\n");
    shown->set_message(line);
  };
}

Log log_above(const CommonOptions& common, const std::shared_ptr<ProgressLine>& progress) {
  if (!progress) return common.log();
  return common.log_to([weak = std::weak_ptr<ProgressLine>(progress)](std::string_view line) {
    if (const std::shared_ptr<ProgressLine> shown = weak.lock()) shown->write_above(line);
  });
}

Error with_timeout_option(Error error, std::chrono::milliseconds timeout) {
  if (error.kind() != ErrorKind::timeout) return error;
  return std::move(error).with([&](ErrorDetail& detail) {
    if (!detail.remedy.empty()) detail.remedy += ' ';
    detail.remedy += "Allow more time with `--timeout " + format_duration(2 * timeout) + "`.";
  });
}

}  // namespace fairlead::cli
