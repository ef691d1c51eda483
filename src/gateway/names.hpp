// public_name(): the names under which clients see tools and prompts, `{server}__{tool}`. A public name
// depends only on the names of the server and the tool. It does not change when another server is added or
// removed, so everything that refers to it (such as authorization rules and prompts for models) stays valid.
#pragma once

#include <string>
#include <string_view>

#include "pool/server_name.hpp"

namespace fairlead::gateway {

inline constexpr std::size_t kMaxPublicNameBytes = 64;  // the limit of the strictest model API
using pool::kMaxServerNameBytes;
using pool::server_name_problem;

// Returns the public name of the tool or prompt `name` of `server`: at most kMaxPublicNameBytes of
// `A-Za-z0-9_-`. A longer name is truncated, and other characters are replaced by `_`; in both cases a digest
// of the original name is appended, so that different names stay different.
std::string public_name(std::string_view server, std::string_view name);

}  // namespace fairlead::gateway
