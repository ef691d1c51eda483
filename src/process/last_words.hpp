// LastWords: what every error of a child says about it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/error.hpp"
#include "fairlead/base/redactor.hpp"

namespace fairlead::process {

struct LastWords {
  std::string command_line;
  std::string search_path;  // empty when the command was not looked up
  Redactor redactor;

  // `code` empty: the error keeps the one it has.
  Error on(Error error, std::string_view code, const std::vector<std::string>& stderr_lines = {}) const;
};

// As one would type it into a shell. A very long one is cut.
std::string quoted_command_line(std::string_view program, const std::vector<std::string>& args);

}  // namespace fairlead::process
