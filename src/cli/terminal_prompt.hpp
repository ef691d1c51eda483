// Questions on the terminal of this process that do not block the loop.
#pragma once

#include <optional>
#include <string>

#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"

namespace fairlead::cli {

// Shows `question` and waits for a line, which is returned without its line feed. Returns nullopt without a
// terminal, if the input ends, and at `deadline`; then the terminal shows that no answer came in time, and
// what was typed so far is discarded. Ctrl-C ends the process. The caller escapes text of others.
Task<std::optional<std::string>> ask_on_loop(Loop& loop, std::string question, Clock::time_point deadline);

}  // namespace fairlead::cli
