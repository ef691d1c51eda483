// Rows that refer to servers and endpoints by name. Private to the library.
#pragma once

#include <string>

#include "registry/write_context.hpp"

namespace fairlead::registry {

// Fail with kInUse if an endpoint or a token that is valid names the server or the endpoint: with another
// name it would no longer be subject to what they allow and deny, and a new row with the old name would be.
// Patterns count if they are the name, or begin with it as part of the public names of its tools.
Result<void> check_may_rename(WriteContext& context, const Server& server);
Result<void> check_may_rename(WriteContext& context, const Endpoint& endpoint);

}  // namespace fairlead::registry
