// random_bytes(): random bytes of the operating system. Private to the library.
#pragma once

#include <cstddef>
#include <string>

#include "fairlead/base/result.hpp"

namespace fairlead {

// Returns `count` bytes of getrandom(), for keys and identifiers. Fails with `io` if the system has none.
Result<std::string> random_bytes(std::size_t count);

}  // namespace fairlead
