// Questions to the user on the terminal of this process (/dev/tty), also while stdin and stdout are pipes.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"

namespace fairlead::cli {

bool stdin_is_terminal();
bool stdout_is_terminal();
// Returns whether this process can ask questions: it has a controlling terminal.
bool has_terminal();
// Returns the width of the terminal of stdout in columns; 80 if it is unknown.
std::size_t terminal_width();

// The following functions show `question` followed by a space, and wait for a line. They return nullopt
// without a terminal, if the input ends, if a signal arrives, and after `timeout` (0: no limit). Callers
// escape text of others with printable_line().
std::optional<std::string> ask(std::string_view question,
                               std::chrono::milliseconds timeout = std::chrono::milliseconds(0));
// Does not show what is typed.
std::optional<std::string> ask_secret(std::string_view question,
                                      std::chrono::milliseconds timeout = std::chrono::milliseconds(0));
// Asks a question with " [y/N]". Returns true for y and yes only.
std::optional<bool> confirm(std::string_view question,
                            std::chrono::milliseconds timeout = std::chrono::milliseconds(0));
// For a destructive step: returns whether to do it. With `yes` (the option --yes) does not ask. Fails with
// `validation` if there is no terminal to ask on, and with `timeout` if there is no answer within `timeout`
// (0: no limit).
Result<bool> confirm_destructive(std::string_view question, bool yes,
                                 std::chrono::milliseconds timeout = std::chrono::milliseconds(0));

}  // namespace fairlead::cli
