// Validation of skills, for servers that offer them and clients that read them. Defined in skills.cpp, as are
// the functions of fairlead/mcp/skill.hpp. Private to the layer.
#pragma once

#include <string>
#include <string_view>

#include "fairlead/mcp/skill.hpp"
#include "mcp/catalogue.hpp"

namespace fairlead::mcp {

// Returns whether `name` consists of 1 to 64 lower case letters, digits and single hyphens, with no hyphen at
// either end.
bool is_skill_name(std::string_view name) noexcept;
// Returns the SHA-256 digest of `bytes` in the form "sha256:HEX".
std::string sha256_digest(std::string_view bytes);

// Returns whether `uri` is below `directory` and does not leave it through "..". REQUIRES: `directory` ends
// with a slash.
bool is_in_directory(std::string_view uri, std::string_view directory);

// Validates a skill and converts it to the form in which a Catalogue contains it. Fails with kind
// `validation` if the skill is invalid.
Result<RegisteredSkill> make_registered_skill(Skill skill);

}  // namespace fairlead::mcp
