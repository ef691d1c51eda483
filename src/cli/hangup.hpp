// How `fairlead serve` reacts to SIGHUP depends on whether its controlling terminal was closed; and SIGHUP
// makes it reopen the log file. These classes do both. docs/gateway.md has the rules.
#pragma once

#include <string>

#include "fairlead/base/result.hpp"

namespace fairlead::cli {

class ControllingTerminal {
 public:
  ControllingTerminal() : present_(exists()) {}

  // Returns true if the process has lost its controlling terminal since the last call. Reliable in a handler
  // of SIGHUP: the kernel detaches the terminal from all processes of its session before it sends the signal.
  bool detect_loss();

 private:
  static bool exists();

  bool present_;
};

// The regular file that stderr is redirected to, by the path that it had when this object was created.
class StderrFile {
 public:
  StderrFile();

  // Opens the path again and redirects stderr to that file, so that a renamed (rotated) file is closed. Does
  // nothing if stderr is not a regular file. Fails with `io` if the file cannot be opened; stderr is
  // unchanged then.
  Result<void> reopen();

 private:
  std::string path_;
};

}  // namespace fairlead::cli
