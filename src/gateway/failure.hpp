// How a server's failure is told to a client: which server, what happened, its last words, what to do about
// it.
#pragma once

#include <string>

#include "fairlead/base/error.hpp"

namespace fairlead::gateway {

// An error to answer with: -32603, and the particulars as data.
Error failure_of(const std::string& server, const Error& error);

}  // namespace fairlead::gateway
