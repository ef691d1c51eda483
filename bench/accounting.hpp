// Time and CPU accounting for benchmarks: clocks, the CPU time of a process in nanoseconds, the CPU time that
// other processes used meanwhile, and the core to run on.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace bench {

std::uint64_t now_ns();

// Pins the calling process to this core. Does nothing if the number is negative.
void pin_to_core(int core);

// Returns the CPU time of all threads of a process so far, in nanoseconds. Exact while the process is
// blocked.
std::uint64_t cpu_ns(pid_t process);

// Measures, from its construction to stop(), the CPU time of this process, of the server process and of all
// others.
class MeasurementWindow {
 public:
  explicit MeasurementWindow(pid_t server);
  void stop();

  double seconds() const { return static_cast<double>(wall_ns_) / 1e9; }
  double own_cpu_us() const { return static_cast<double>(own_ns_) / 1e3; }
  double server_cpu_us() const { return static_cast<double>(server_ns_) / 1e3; }
  // Cores used by all other processes (builds, tests, neighbours). Above 0.35 the result is unreliable.
  double foreign_cores() const;

 private:
  pid_t server_;
  std::uint64_t machine_ns_;
  std::uint64_t own_ns_;
  std::uint64_t server_ns_;
  std::uint64_t wall_ns_;
};

// Returns the value below which `fraction` (0 to 1) of all samples lie. Sorts the samples.
double quantile(std::vector<double>& samples, double fraction);

}  // namespace bench
