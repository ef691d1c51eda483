// Private to the layer.
#pragma once

#include <sys/types.h>

#include "fairlead/process/descriptor_limit.hpp"

namespace fairlead::process {

// Gives a process that was just started, and whatever it starts, the soft limit from before
// raise_descriptor_limit().
void restore_descriptor_limit(pid_t pid) noexcept;

}  // namespace fairlead::process
