// Skills of a server: serves the methods of the skills extension, and the files of skills as resources.
// Private to the layer.
#pragma once

#include <memory>

#include "mcp/features.hpp"

namespace fairlead::mcp {

// Serves skills/list, skills/get and resources/directory/read.
Answer serve_skill_request(const FeatureRequest& request);

// Returns a resource handler that reads a file of a skill.
Server::ReadResource skill_file_reader(std::shared_ptr<const RegisteredSkillFile> file);

}  // namespace fairlead::mcp
