#include "accounting.hpp"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace bench {

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

// Returns the busy time of all cores. The kernel counts it in ticks, so it is imprecise for short windows.
std::uint64_t machine_busy_ns() {
  std::ifstream file("/proc/stat");
  std::string label;
  std::uint64_t user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft_interrupts = 0;
  file >> label >> user >> nice >> system >> idle >> waiting >> interrupts >> soft_interrupts;
  const std::uint64_t ticks = user + nice + system + interrupts + soft_interrupts;
  return ticks * (kSecond / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK)));
}

}  // namespace

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kSecond + static_cast<std::uint64_t>(now.tv_nsec);
}

void pin_to_core(int core) {
  if (core < 0) return;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<std::size_t>(core), &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

std::uint64_t cpu_ns(pid_t process) {
  std::uint64_t total = 0;
  std::error_code gone;
  const std::filesystem::path tasks = "/proc/" + std::to_string(process) + "/task";
  for (const auto& thread : std::filesystem::directory_iterator(tasks, gone)) {
    std::uint64_t on_core = 0;
    std::ifstream(thread.path() / "schedstat") >> on_core;
    total += on_core;
  }
  return total;
}

MeasurementWindow::MeasurementWindow(pid_t server)
    : server_(server),
      machine_ns_(machine_busy_ns()),
      own_ns_(cpu_ns(getpid())),
      server_ns_(cpu_ns(server)),
      wall_ns_(now_ns()) {}

void MeasurementWindow::stop() {
  wall_ns_ = now_ns() - wall_ns_;
  server_ns_ = cpu_ns(server_) - server_ns_;
  own_ns_ = cpu_ns(getpid()) - own_ns_;
  machine_ns_ = machine_busy_ns() - machine_ns_;
}

double MeasurementWindow::foreign_cores() const {
  const auto ours = static_cast<double>(own_ns_ + server_ns_);
  return std::max(0.0, (static_cast<double>(machine_ns_) - ours) / static_cast<double>(wall_ns_));
}

double quantile(std::vector<double>& samples, double fraction) {
  if (samples.empty()) return 0;
  std::ranges::sort(samples);
  return samples[static_cast<std::size_t>(std::lround(fraction * static_cast<double>(samples.size() - 1)))];
}

}  // namespace bench
