// What a server keeps of the skills it offers, and how it serves them. Private to the layer.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fairlead/mcp/server.hpp"
#include "fairlead/mcp/skill.hpp"
#include "mcp/features.hpp"

namespace fairlead::mcp {

// One to 64 lower case letters, digits and single hyphens, with no hyphen at either end.
bool is_skill_name(std::string_view name) noexcept;
// "sha256:…" of these bytes.
std::string digest_of(std::string_view bytes);

// Whether an address is below a directory, which ends with a slash, and does not lead out of it again.
bool is_in_directory(std::string_view uri, std::string_view directory);

// Makes of a skill what is put into a catalogue: its entry and its files. Kind validation when it is none.
Result<OfferedSkill> offer(Skill skill);

// skills/list, skills/get and resources/directory/read.
Answer serve_skills(const FeatureCall& call);

}  // namespace fairlead::mcp
