// Clears up the command of a draft: a whole command line in `command`, `cmd /c`, `~`, and bridges such as
// mcp-remote, which become the HTTP server behind them. Private to the layer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clients/draft.hpp"

namespace fairlead::clients {

// `home`: the directory that `~` stands for; may be empty.
void clear_up_command(Draft& draft, const std::string& home);

// Splits a command line at white space; quotation marks keep words together.
std::vector<std::string> split_command_line(std::string_view line);

// Returns the last part of the path of a program, without .exe or .cmd.
std::string program_name(std::string_view command);

}  // namespace fairlead::clients
