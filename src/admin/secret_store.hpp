// The secret store of a gateway whose servers are in a registry. Private to the library.
#pragma once

#include <memory>

#include "fairlead/pool/pool.hpp"
#include "registry/registry.hpp"

namespace fairlead::admin {

// Returns a store that decrypts the value that find_secret() selects. Fails with a remedy that names who must
// provide a missing value.
pool::SecretStore registry_secret_store(std::shared_ptr<registry::Registry> registry);

}  // namespace fairlead::admin
