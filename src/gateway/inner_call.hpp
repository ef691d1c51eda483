// make_inner_call(): the tools/call request that a call of execute_tool stands for. Private to the layer.
#pragma once

#include "fairlead/mcp/backend.hpp"

namespace fairlead::gateway {

// Returns the request with the name and the arguments that the arguments of execute_tool specify; all other
// members of the request are unchanged, and the values are copied byte by byte. The request is then the same
// as if the client had called the tool itself. Fails with kind validation, and a message for models, if the
// arguments are invalid.
Result<mcp::BackendRequest> make_inner_call(const mcp::BackendRequest& request);

}  // namespace fairlead::gateway
