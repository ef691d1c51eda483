// ChildErrorContext: context that is added to every error about a child process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/error.hpp"
#include "fairlead/base/redactor.hpp"

namespace fairlead::process {

struct ChildErrorContext {
  std::vector<std::string> command;  // the resolved command and its arguments
  std::string search_path;           // the PATH that was searched; empty if the command was not looked up
  Redactor redactor;

  // Returns `error` with this context, the failure code `code` and its remedy. If `code` is empty, the error
  // keeps its own code. Secrets are redacted.
  Error add_to(Error error, std::string_view code, const std::vector<std::string>& stderr_lines = {},
               const std::vector<std::string>& stdout_lines = {}) const;

 private:
  std::vector<std::string> redacted(const std::vector<std::string>& lines) const;
};

// Returns the word quoted for a shell (POSIX sh; a word with control characters or bytes that are not UTF-8
// as
// $'…', which bash, ksh and zsh read).
std::string shell_quoted(std::string_view word);
// Returns the command line quoted for a shell, with secrets redacted. A very long one is truncated.
std::string quoted_command_line(const std::vector<std::string>& command, const Redactor& redactor = {});

}  // namespace fairlead::process
