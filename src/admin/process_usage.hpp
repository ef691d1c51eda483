// Reads the memory and the processor time of a process from /proc. Private to the layer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fairlead::admin {

struct ProcessUsage {
  std::uint64_t memory_bytes = 0;  // resident, without its children
  double cpu_seconds = 0;          // user and system, without its children
};

// Returns nullopt if the process does not exist.
std::optional<ProcessUsage> usage_of_process(int pid);

// Returns what is shown of the key of an upstream. The key can be the id of a session, which is a credential,
// so this is a digest of it.
std::string shown_upstream_key(const std::string& key);

}  // namespace fairlead::admin
