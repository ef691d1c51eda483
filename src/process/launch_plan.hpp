// plan_launch: resolves a ProcessSpec into a LaunchPlan.
#pragma once

#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"
#include "fairlead/process/child.hpp"
#include "process/keeper_client.hpp"

namespace fairlead::process {

// Returns the plan for starting `spec`, complete except for the descriptors. A command without a slash is
// looked up in the PATH that the child will have; a relative path with a slash is relative to the child's
// working directory, as for execve after chdir. Fails with kind `spawn`.
Result<LaunchPlan> plan_launch(const ProcessSpec& spec);

// ---- exposed for tests ----

// Returns the child's environment as NAME=value, without the cookie.
std::vector<std::string> child_environment(const ProcessSpec& spec,
                                           const std::map<std::string, std::string>& secrets = {});
// Returns the path of the command, found in `path`. A command with a slash is returned unchanged. Fails with
// kind `spawn` if the command is not found or not executable.
Result<std::string> find_command(const std::string& command, std::string_view path, const std::string& cwd);

}  // namespace fairlead::process
