// Reads a ServerSpec from a configuration. Private.
#pragma once

#include "fairlead/pool/server_spec.hpp"
#include "json/config_reader.hpp"

namespace fairlead::pool {

// Reads all keys of a server into `spec`. Reports invalid values and unknown keys to `in`.
void read_server_spec(json::ConfigReader& in, ServerSpec& spec);

// Reads a server of a desktop client's configuration file: only the keys of its transport. The address may be
// `url`, `serverUrl` or `httpUrl`. Accepts the other keys of the known clients without using them; the caller
// reports what ConfigReader::each_unknown() finds.
void read_desktop_server(json::ConfigReader& in, ServerSpec& spec);

}  // namespace fairlead::pool
