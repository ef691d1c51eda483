// The load driver: starts a server as a child process on stdio, calls its `echo` tool, and prints the
// measured times as one JSON object. Requests are built before the clock starts, so that only the server is
// measured.
//
//   driver --phase sequential|pipelined [options] -- COMMAND ARG…
//     --line-bytes N     length of one request (200)      --in-flight N   calls at a time, pipelined (64)
//     --seconds S        length of the phase (1)          --warm-up N     calls before it (2000)
//     --own-core N       --server-core N                  --show-stderr
//     --say legacy|modern|legacy-list|modern-list         calls of `echo`, or `tools/list`; in which era
//     (legacy)
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "accounting.hpp"
#include "child.hpp"
#include "driver_phases.hpp"

namespace {

using namespace bench;

constexpr unsigned kWatchdogSeconds = 60;
constexpr double kWarmUpSeconds = 10;

struct Options {
  bool sequential = false;
  RequestKind request_kind;
  std::size_t line_bytes = 200;
  Load load;
  std::uint64_t warm_up = 2000;
  int own_core = -1;
  int server_core = -1;
  bool show_stderr = false;
  char** command = nullptr;
};

[[noreturn]] void usage(const std::string& about) {
  std::fprintf(stderr, "driver: %s; see the head of bench/driver.cpp\n", about.c_str());
  std::exit(2);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--") {
      options.command = argv + i + 1;
      break;
    }
    if (flag == "--show-stderr") {
      options.show_stderr = true;
      continue;
    }
    if (i + 1 == argc) usage(flag + " needs a value");
    const char* value = argv[++i];
    if (flag == "--phase") {
      options.sequential = std::string(value) == "sequential";
    } else if (flag == "--say") {
      const std::string words = value;
      options.request_kind = RequestKind{words.starts_with("modern"), words.ends_with("-list")};
    } else if (flag == "--line-bytes") {
      options.line_bytes = std::strtoul(value, nullptr, 10);
    } else if (flag == "--in-flight") {
      options.load.in_flight = std::strtoul(value, nullptr, 10);
    } else if (flag == "--seconds") {
      options.load.seconds = std::strtod(value, nullptr);
    } else if (flag == "--warm-up") {
      options.warm_up = std::strtoul(value, nullptr, 10);
    } else if (flag == "--own-core") {
      options.own_core = std::atoi(value);
    } else if (flag == "--server-core") {
      options.server_core = std::atoi(value);
    } else {
      usage("unknown option " + flag);
    }
  }
  if (!options.command || !*options.command) usage("no command");
  return options;
}

void print_shared(const MeasurementWindow& window, double calls, double start_ms) {
  std::printf("\"start_ms\":%.3f,", start_ms);
  std::printf(
      "\"calls\":%.0f,\"calls_per_s\":%.1f,\"server_cpu_us\":%.4f,\"driver_cpu_us\":%.4f,\"foreign\":%.3f}\n",
      calls, calls / window.seconds(), window.server_cpu_us() / calls, window.own_cpu_us() / calls,
      window.foreign_cores());
}

void measure(const Options& options, Wire& wire, const Requests& requests, pid_t server, double start_ms) {
  MeasurementWindow window(server);
  if (options.sequential) {
    std::vector<double> times = call_sequentially(wire, requests, options.load);
    window.stop();
    const double p50 = quantile(times, 0.5);
    std::printf("{\"phase\":\"sequential\",\"p50_us\":%.3f,\"p90_us\":%.3f,\"p99_us\":%.3f,", p50,
                quantile(times, 0.9), quantile(times, 0.99));
    print_shared(window, static_cast<double>(times.size()), start_ms);
  } else {
    const std::uint64_t calls = call_pipelined(wire, requests, options.load, false);
    window.stop();
    std::printf("{\"phase\":\"pipelined\",\"in_flight\":%zu,", options.load.in_flight);
    print_shared(window, static_cast<double>(calls), start_ms);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  alarm(kWatchdogSeconds);  // a server that hangs ends the run
  const Requests requests(2 * options.load.in_flight, options.line_bytes, options.request_kind);
  const std::uint64_t started = now_ns();
  Child child = start_child(options.command, options.server_core, options.show_stderr);
  pin_to_core(options.own_core);
  Wire wire(child);
  // The modern era has no handshake: the first response is that of a call.
  if (!options.request_kind.modern) initialize(wire);
  if (options.request_kind.modern) call_once(wire, requests);
  const double start_ms = static_cast<double>(now_ns() - started) / 1e6;
  Load warm_up = options.load;
  warm_up.seconds = kWarmUpSeconds;
  warm_up.max_calls = options.warm_up;
  call_pipelined(wire, requests, warm_up, true);
  measure(options, wire, requests, child.pid, start_ms);
  if (!end_child(child))
    std::fprintf(stderr, "driver: the server did not end well at the end of its input\n");
}
