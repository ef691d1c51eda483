// Descriptor limit of child processes. Private part of fairlead/process/descriptor_limit.hpp.
#pragma once

#include <sys/types.h>

#include "fairlead/process/descriptor_limit.hpp"

namespace fairlead::process {

// Sets the soft limit of the process `pid` to the value that was in force before raise_descriptor_limit().
// Descendants that the process starts afterwards inherit it.
void restore_descriptor_limit(pid_t pid) noexcept;

}  // namespace fairlead::process
