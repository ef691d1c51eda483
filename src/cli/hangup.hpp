// What `fairlead serve` needs to know on SIGHUP: whether the terminal it was started from has closed, and
// which file its log goes to. docs/gateway.md has the rules.
#pragma once

#include <string>

#include "fairlead/base/result.hpp"

namespace fairlead::cli {

class ControllingTerminal {
 public:
  ControllingTerminal() : present_(exists()) {}

  // True once, if the process had a controlling terminal and no longer has one. The kernel takes a terminal
  // away from all processes of its session before it sends SIGHUP.
  bool lost();

 private:
  static bool exists();

  bool present_;
};

// The regular file that stderr was redirected to, by the name that it had when this was made.
class StderrFile {
 public:
  StderrFile();

  // Opens the file again by its name and makes it stderr, so that a file that was renamed is let go of. Does
  // nothing if stderr is no regular file. Kind io if it cannot be opened; stderr is then as it was.
  Result<void> reopen();

 private:
  std::string path_;
};

}  // namespace fairlead::cli
