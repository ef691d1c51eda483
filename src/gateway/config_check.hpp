// Finds all problems of a configuration file. Private to the library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/result.hpp"

namespace fairlead::gateway {

// More problems of one file are not reported.
inline constexpr std::size_t kMaxConfigProblems = 100;

// Returns the problems for which parse_config() would reject the text, each with its line or key; none if it
// accepts the text. The first is the one that parse_config() returns.
std::vector<Error> config_problems(std::string_view text, const std::string& name);
// The same for a file. Fails with `validation` if the file cannot be read.
Result<std::vector<Error>> config_file_problems(const std::string& path);

}  // namespace fairlead::gateway
