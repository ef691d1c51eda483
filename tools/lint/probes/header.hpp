// Probe for violations in headers: the linter checks a header where it is included.
#pragma once

#include "task.hpp"

inline Task<int> in_a_header() {
  if (co_await ready()) co_return 1;  // flagged: C1
  co_return 0;
}
