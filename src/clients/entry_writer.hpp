// Writes one row as an entry of a client's file. Private to the layer.
#pragma once

#include <set>
#include <string>

#include "clients/client.hpp"
#include "clients/write.hpp"
#include "fairlead/registry/model.hpp"

namespace fairlead::clients {

// `secrets`: the secrets that the client declares itself are added.
ExportedEntry entry_of(const Client& client, const registry::Server& server, std::set<std::string>& secrets);

}  // namespace fairlead::clients
