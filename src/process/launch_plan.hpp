// From what the caller wants started to what the keeper is told.
#pragma once

#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"
#include "fairlead/process/child.hpp"
#include "process/keeper_client.hpp"

namespace fairlead::process {

// Everything but the descriptors. A name without a slash is looked up in the PATH the child will have; a path
// with one is taken from the child's working directory, as execve does after chdir.
Result<SpawnOrder> plan_launch(const ProcessSpec& spec);

// Pieces of it.
std::vector<std::string> child_environment(const ProcessSpec& spec,
                                           const std::map<std::string, std::string>& secrets = {});
Result<std::string> find_command(const std::string& command, std::string_view path, const std::string& cwd);

}  // namespace fairlead::process
