// Asks the user on the terminal what a server wants to know (elicitation).
#pragma once

#include <chrono>
#include <string>

#include "fairlead/loop/loop.hpp"
#include "fairlead/mcp/client.hpp"

namespace fairlead::cli {

// Returns what the user answered; the action `cancel` without a terminal, and if the user has not answered
// everything within `timeout`.
Task<Result<mcp::ElicitResult>> elicit_on_terminal(Loop& loop, std::chrono::milliseconds timeout,
                                                   std::string message, json::Raw schema);
Task<Result<mcp::ElicitResult>> elicit_url_on_terminal(Loop& loop, std::chrono::milliseconds timeout,
                                                       std::string message, std::string url);

}  // namespace fairlead::cli
