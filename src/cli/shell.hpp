// Runs commands of the user: one that prints a token, and the editor.
#pragma once

#include <chrono>
#include <string>

#include "fairlead/base/result.hpp"

namespace fairlead::cli {

// Runs `command` in /bin/sh and returns what it printed to stdout. stdin and stderr are those of this
// process, so that it can ask for a passphrase. Fails with `spawn`, with `process_exited` if its status is
// not 0, with `frame_too_large` after 64 KiB, and with `timeout`; then the command is killed.
Result<std::string> run_shell(const std::string& command,
                              std::chrono::milliseconds timeout = std::chrono::milliseconds(60'000));

// Opens the file in the user's editor ($VISUAL, $EDITOR or vi) and waits until the editor ends. Fails with
// `spawn` or `process_exited`.
Result<void> edit_file(const std::string& path);

}  // namespace fairlead::cli
