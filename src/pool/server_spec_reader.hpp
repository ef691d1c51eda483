// Reads the keys of a server from a configuration. Private.
#pragma once

#include "fairlead/pool/server_spec.hpp"
#include "json/config_reader.hpp"

namespace fairlead::pool {

// Reads all keys of a server into `spec`; anything else is an error of `in`.
void read_server_spec(json::ConfigReader& in, ServerSpec& spec);

// Reads only the keys that say how the server is reached, and ignores others: the form of desktop clients,
// who call the address `url`, `serverUrl` or `httpUrl`.
void read_desktop_server(json::ConfigReader& in, ServerSpec& spec);

}  // namespace fairlead::pool
