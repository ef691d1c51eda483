// ChildErrorContext: context that is added to every error about a child process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/error.hpp"
#include "fairlead/base/redactor.hpp"

namespace fairlead::process {

struct ChildErrorContext {
  std::string command_line;
  std::string search_path;  // the PATH that was searched; empty if the command was not looked up
  Redactor redactor;

  // Returns `error` with this context, the failure code `code` and its remedy. If `code` is empty, the error
  // keeps its own code. Secrets are redacted.
  Error add_to(Error error, std::string_view code, const std::vector<std::string>& stderr_lines = {}) const;
};

// Returns the command line quoted for a shell. A very long one is truncated.
std::string quoted_command_line(std::string_view program, const std::vector<std::string>& args);

}  // namespace fairlead::process
