// entry_problem(): validates list entries against the MCP schema. Many clients reject a whole list because of
// one invalid entry. The gateway therefore omits the invalid entries of a server, so that clients can use all
// other entries.
#pragma once

#include <optional>
#include <string>

#include "fairlead/json/view.hpp"
#include "gateway/server_lists.hpp"

namespace fairlead::gateway {

// Returns the first violation of the MCP schema; nullopt if the entry is valid. With `modern` false the rules
// of revisions up to 2025-11-25 apply, which restrict the input schemas of tools further.
std::optional<std::string> entry_problem(ListKind kind, json::View entry, bool modern);

}  // namespace fairlead::gateway
