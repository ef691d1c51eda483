// fairlead terminate: ends the processes listed in a manifest, if the process that wrote the manifest died
// without ending them.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <limits>

#include "cli/common.hpp"
#include "cli/output.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/process/terminate.hpp"

namespace fairlead::cli {

namespace {

struct TerminateCommand {
  std::string manifest;
  int watch = 0;
  bool json = false;
  TerminateOptions options;
};

void print_report_as_json(const TerminateReport& report) {
  json::Writer writer;
  writer.begin_object().key("processes").begin_array();
  for (const TerminatedProcess& process : report.processes) {
    writer.begin_object().key("pid").integer(process.pid).key("name").string(process.name);
    writer.key("by").string(process.matched_by).key("ending").string(to_string(process.result)).end_object();
  }
  writer.end_array().key("entries").unsigned_integer(report.entry_count);
  writer.key("recycled").unsigned_integer(report.recycled_count);
  writer.key("other_system").unsigned_integer(report.other_system_count);
  writer.key("unreadable").unsigned_integer(report.unreadable_line_count);
  writer.key("foreign_cgroups").begin_array();
  for (const std::string& cgroup : report.foreign_cgroups) writer.string(cgroup);
  writer.end_array().end_object();
  print_json(writer.text());
}

void print_report(const TerminateReport& report) {
  for (const TerminatedProcess& process : report.processes) {
    print_text_line(std::to_string(process.pid) + "  " + printable_line(process.name) + "  (" +
                    std::string(process.matched_by) + ")  " + std::string(to_string(process.result)));
  }
  std::fprintf(stderr, "fairlead: %zu entries, %zu processes", report.entry_count, report.processes.size());
  if (report.recycled_count > 0) std::fprintf(stderr, ", %zu recycled PIDs", report.recycled_count);
  if (report.other_system_count > 0)
    std::fprintf(stderr, ", %zu entries of another boot or namespace", report.other_system_count);
  if (report.unreadable_line_count > 0)
    std::fprintf(stderr, ", %zu unreadable lines", report.unreadable_line_count);
  std::fputc('\n', stderr);
  for (const std::string& cgroup : report.foreign_cgroups) {
    std::fprintf(stderr, "fairlead: cgroup %s was skipped: it was not created for the process in its entry\n",
                 std::string(json::string(cgroup).text()).c_str());
  }
}

// Waits until the process `pid` has ended. Ignores SIGHUP and SIGPIPE from then on: when the watched process
// dies, the terminal may close with it.
Result<void> wait_for_watched(int pid) {
  ::signal(SIGHUP, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  return wait_for_process(pid);
}

int execute(const TerminateCommand& command) {
  if (command.watch > 0) {
    const Result<void> gone = wait_for_watched(command.watch);
    if (!gone) return report(gone.error());
  }
  const Result<TerminateReport> done = terminate_manifest(command.manifest, command.options);
  // A watched process that died before it started anything has left no manifest.
  if (!done && command.watch > 0 && done.error().detail().os_error == ENOENT) return kSuccess;
  if (!done) return report(done.error());
  command.json ? print_report_as_json(*done) : print_report(*done);
  if (command.options.dry_run || done->all_ended()) return kSuccess;
  return report(Error(ErrorKind::timeout, "some processes could not be ended"));
}

}  // namespace

void add_terminate(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "terminate", "End the processes named by a manifest and their descendants; recycled PIDs are skipped");
  auto terminate = std::make_shared<TerminateCommand>();
  command
      ->add_option("MANIFEST", terminate->manifest,
                   "Manifest file, for example of `fairlead serve --terminator-manifest`")
      ->required();
  command->add_option("--watch", terminate->watch, "First wait until this process has ended")
      ->type_name("PID")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()));
  command->add_flag("--dry-run", terminate->options.dry_run, "Only print what would be ended");
  command->add_flag("--json", terminate->json, "As a JSON object");
  add_duration(*command, "--grace", terminate->options.grace, "Time from SIGTERM to SIGKILL [1s]");
  command->footer(
      "Exit status: 0 no process is left, 2 not a manifest of this user, 3 cannot be read, 4 a process could "
      "not be ended.");
  command->callback([terminate, &status] { status = execute(*terminate); });
}

}  // namespace fairlead::cli
