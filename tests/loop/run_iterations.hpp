// run_iterations(): runs a loop for a few iterations.
#pragma once

#include <functional>

#include "fairlead/loop/loop.hpp"

namespace fairlead::test {

// Polls a few times and runs the callbacks that are due.
inline void run_iterations(Loop& loop) {
  int left = 4;
  const std::function<void()> next = [&] {
    if (--left > 0) loop.post(next);
  };
  loop.post(next);
  loop.run_until([&] { return left == 0; });
}

}  // namespace fairlead::test
