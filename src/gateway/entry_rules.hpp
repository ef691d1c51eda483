// What an entry of a list must be like. Clients that check what they get refuse a whole list for one entry
// that is not: what one server lists wrongly must not take away what the others have.
#pragma once

#include <optional>
#include <string>

#include "fairlead/json/view.hpp"
#include "gateway/offers.hpp"

namespace fairlead::gateway {

// The first thing wrong with it; nullopt when nothing is. Up to 2025-11-25 a tool's schema is narrower.
std::optional<std::string> entry_problem(Kind kind, json::View entry, bool modern);

}  // namespace fairlead::gateway
