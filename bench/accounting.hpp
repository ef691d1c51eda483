// What a measurement needs to know about time and processors: clocks, the processor time of a process to the
// nanosecond, what other processes used meanwhile, and which core to run on.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace bench {

std::uint64_t now_ns();

// Runs the calling process on this core from now on. A negative number leaves it alone.
void pin_to_core(int core);

// Processor time of all threads of a process so far, in nanoseconds. Exact while the process waits.
std::uint64_t cpu_ns(pid_t process);

// From its making to stop(): what we, the other process and everybody else used.
class Window {
 public:
  explicit Window(pid_t other);
  void stop();

  double seconds() const { return static_cast<double>(wall_ns_) / 1e9; }
  double own_cpu_us() const { return static_cast<double>(own_ns_) / 1e3; }
  double other_cpu_us() const { return static_cast<double>(other_ns_) / 1e3; }
  // Cores that neither we nor the other process used: builds, tests, neighbours. Above 0.35 a run is
  // doubtful.
  double foreign_cores() const;

 private:
  pid_t other_;
  std::uint64_t machine_ns_;
  std::uint64_t own_ns_;
  std::uint64_t other_ns_;
  std::uint64_t wall_ns_;
};

// The value below which `part` (0 to 1) of all samples lie. Sorts them.
double quantile(std::vector<double>& samples, double part);

}  // namespace bench
