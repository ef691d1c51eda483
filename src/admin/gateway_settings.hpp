// apply_to(): the configuration in the registry as the configuration of a gateway. Private to the library.
#pragma once

#include "fairlead/gateway/config.hpp"
#include "registry/configuration.hpp"

namespace fairlead::admin {

// Sets every member of `config` that has a value in the registry (docs/registry.md, "Settings").
void apply_to(const registry::Configuration& values, gateway::Config& config);

}  // namespace fairlead::admin
