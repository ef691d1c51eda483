// Reads one entry of a client's file. Private to the layer.
#pragma once

#include "clients/draft.hpp"
#include "clients/entry_format.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::clients {

// Values of another type than expected are kept as if they were unknown, with a remark. REQUIRES: `entry` is
// an object.
Draft read_entry(json::View entry, const EntryFormat& format);

// Returns a text without NUL characters, which the registry does not store; nullopt if the value is neither a
// string nor, if `scalars`, a number or a boolean.
std::optional<std::string> text_of(json::View value, bool scalars = false);

}  // namespace fairlead::clients
