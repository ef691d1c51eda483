// Reads the memory and the processor time of a process from /proc. Private to the layer.
#pragma once

#include <cstdint>
#include <optional>

namespace fairlead::admin {

struct ProcessUsage {
  std::uint64_t memory_bytes = 0;  // resident, without its children
  double cpu_seconds = 0;          // user and system, without its children
};

// Returns nullopt if the process does not exist.
std::optional<ProcessUsage> usage_of_process(int pid);

}  // namespace fairlead::admin
