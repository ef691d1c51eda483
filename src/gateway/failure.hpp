// Errors that the gateway answers its clients with. Each has a stable code and a remedy in its data
// (docs/errors.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fairlead/base/error.hpp"

namespace fairlead::gateway {

// The failure of a server: -32603, with the server, the kind of error and its detail as data.
Error failure_of(const std::string& server, const Error& failed);
// A refusal of the gateway's own. `code` is one of process/failure.hpp.
Error refusal_of(std::int64_t rpc_code, std::string message, std::string_view code);

}  // namespace fairlead::gateway
