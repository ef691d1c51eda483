// The server.json of a server that is published: what others can read about it. Private to the library.
#pragma once

#include <string>

#include "fairlead/json/raw.hpp"
#include "fairlead/registry/model.hpp"

namespace fairlead::packages {

// Returns the document of a row whose `published` is not absent: the members of `published`, and for those
// that it lacks what can be derived from the row. No value of an argument, a variable or a header, and no
// reference is in a derived member: they become inputs to ask for. Addresses that are not public, and those
// whose path may be secret, are left out.
json::Raw server_document_of(const registry::Server& row);

}  // namespace fairlead::packages
