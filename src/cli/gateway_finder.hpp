// find_gateway(): decides which gateway a command talks to, and with which token.
#pragma once

#include "cli/admin_client.hpp"

namespace fairlead::cli {

// Fails with `validation` if the options contradict each other, or a token or a context cannot be read.
Result<GatewayAddress> find_gateway(const GatewayChoice& choice);

}  // namespace fairlead::cli
