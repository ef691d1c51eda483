// Conversion of ServerSpec from and to JSON: an object with the keys of a server in docs/gateway.md. The name
// is not part of the object.
#pragma once

#include <string>

#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/pool/server_spec.hpp"

namespace fairlead::pool {

// Returns the JSON object of `spec`, without the members that have their default values.
json::Raw to_json(const ServerSpec& spec);

// Fails with `validation` and a message that names the key if a value is invalid or a key is unknown.
// References are neither resolved nor checked. The command or url may be missing if the server is not
// enabled.
Result<ServerSpec> server_spec_from_json(std::string name, json::View object);

}  // namespace fairlead::pool
