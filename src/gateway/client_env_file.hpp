// Reads the file that `envFile` names in the configuration file of an editor. Private to the layer.
#pragma once

#include <map>
#include <string>

#include "fairlead/base/result.hpp"

namespace fairlead::gateway {

// Returns the variables of the file. `name` is the value of `envFile`: a path, relative to the directory of
// the configuration file `config_path`. `~/` and `${userHome}` are the home directory, `${workspaceFolder}`
// the directory that contains .vscode or .cursor. Fails with `validation`; the message does not contain the
// content of the file.
Result<std::map<std::string, std::string>> read_client_env_file(const std::string& name,
                                                                const std::string& config_path);

}  // namespace fairlead::gateway
