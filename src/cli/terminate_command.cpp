// fairlead terminate: ends what a manifest names, should those who wrote it have died without doing so.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <limits>

#include "base/printable.hpp"
#include "cli/common.hpp"
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

void print_json(const TerminateReport& report) {
  json::Writer writer;
  writer.begin_object().key("processes").begin_array();
  for (const TerminatedProcess& process : report.processes) {
    writer.begin_object().key("pid").integer(process.pid).key("name").string(process.name);
    writer.key("by").string(process.by).key("ending").string(to_string(process.ending)).end_object();
  }
  writer.end_array().key("entries").unsigned_integer(report.entries);
  writer.key("recycled").unsigned_integer(report.recycled);
  writer.key("other_system").unsigned_integer(report.other_system);
  writer.key("unreadable").unsigned_integer(report.unreadable);
  writer.key("foreign_cgroups").begin_array();
  for (const std::string& cgroup : report.foreign_cgroups) writer.string(cgroup);
  writer.end_array().end_object();
  std::cout << writer.text() << std::endl;
}

void print_text(const TerminateReport& report) {
  for (const TerminatedProcess& process : report.processes) {
    std::cout << process.pid << "  " << printable_line(process.name) << "  (" << process.by << ")  "
              << to_string(process.ending) << std::endl;
  }
  std::fprintf(stderr, "fairlead: %zu entries, %zu processes", report.entries, report.processes.size());
  if (report.recycled > 0) std::fprintf(stderr, ", %zu numbers that are others' now", report.recycled);
  if (report.other_system > 0)
    std::fprintf(stderr, ", %zu entries of another boot or namespace", report.other_system);
  if (report.unreadable > 0) std::fprintf(stderr, ", %zu lines that are no entries", report.unreadable);
  std::fputc('\n', stderr);
  for (const std::string& cgroup : report.foreign_cgroups) {
    std::fprintf(stderr,
                 "fairlead: left alone: the cgroup %s was not created for the process it stands with\n",
                 std::string(json::string(cgroup).text()).c_str());
  }
}

// The one who starts us beside it may take its terminal with it when it dies.
Result<void> watch(int pid) {
  ::signal(SIGHUP, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  return wait_for_process(pid);
}

int execute(const TerminateCommand& command) {
  fill_standard_streams();
  if (command.watch > 0) {
    const Result<void> gone = watch(command.watch);
    if (!gone) return report(gone.error());
  }
  const Result<TerminateReport> done = terminate_manifest(command.manifest, command.options);
  // One who died before it had started anything has left no manifest.
  if (!done && command.watch > 0 && done.error().detail().os_error == ENOENT) return kDone;
  if (!done) return report(done.error());
  command.json ? print_json(*done) : print_text(*done);
  if (command.options.dry_run || done->all_gone()) return kDone;
  return report(Error(ErrorKind::timeout, "not all of them could be ended"));
}

}  // namespace

void add_terminate(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "terminate",
      "End the processes that a manifest names and what they started, if they are still the same");
  auto terminate = std::make_shared<TerminateCommand>();
  command->add_option("MANIFEST", terminate->manifest, "The file that names them")->required();
  command->add_option("--watch", terminate->watch, "First wait until this process is gone")
      ->type_name("PID")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()));
  command->add_flag("--dry-run", terminate->options.dry_run, "Only print what would be ended");
  command->add_flag("--json", terminate->json, "As a JSON object");
  add_duration(*command, "--grace", terminate->options.grace, "How long after SIGTERM SIGKILL follows [1s]");
  command->footer(
      "Exit status: 0 nothing is left, 2 not a manifest of this user, 3 cannot be read, 4 something would "
      "not end.");
  command->callback([terminate, &status] { status = execute(*terminate); });
}

}  // namespace fairlead::cli
