// Files with environment variables, as `envFile` and `.env` name them. Private to the library.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace fairlead {

// Reads lines of the form NAME=VALUE, also with `export` in front. `#` begins a comment. A value may be in
// single quotes (literal) or double quotes (with \n, \t, \", \\ and \$). Lines of another form are ignored;
// if a name is repeated, its last value counts. Nothing is expanded.
std::map<std::string, std::string> parse_env_file(std::string_view text);

}  // namespace fairlead
