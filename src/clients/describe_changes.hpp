// Describes rows and merge patches for people. Private to the layer.
#pragma once

#include <string>
#include <vector>

#include "clients/imported_server.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::clients {

// Both return one line for each value. Literal values of env and headers, and values at the pointers of
// `secrets`, are replaced by ***; references are shown. `metadata` is one line.

// Lines such as `config.command: "npx"`.
std::vector<std::string> describe_row(json::View row, const std::vector<LiteralSecret>& secrets);
// Lines such as `config.args[1]: "a" -> "b"`, for what a merge patch changes in `before`.
std::vector<std::string> describe_patch(json::View before, json::View patch,
                                        const std::vector<LiteralSecret>& secrets);

}  // namespace fairlead::clients
