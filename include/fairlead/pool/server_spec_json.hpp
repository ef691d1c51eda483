// ServerSpec as JSON: an object with the keys of a server in docs/gateway.md. The name is not part of it.
#pragma once

#include <string>

#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/pool/server_spec.hpp"

namespace fairlead::pool {

// Members that have their defaults are left out.
json::Raw to_json(const ServerSpec& spec);

// Kind validation, with the key that is wrong; an unknown key is wrong, too. References are not resolved, and
// those that cannot be are no error here. A server that is not enabled may lack its command or url.
Result<ServerSpec> server_spec_from_json(std::string name, json::View object);

}  // namespace fairlead::pool
