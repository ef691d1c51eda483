// The process's own limit on open descriptors (RLIMIT_NOFILE).
#pragma once

#include <cstddef>

#include "fairlead/base/result.hpp"

namespace fairlead {

// Raises the soft limit to the hard limit and returns it. Child processes that are started later get the
// previous soft limit, because programs that use select() fail on higher descriptors. Call it once, before
// threads are started: both the limit and the stored previous limit are global to the process.
Result<std::size_t> raise_descriptor_limit();

}  // namespace fairlead
