// Connections to http:, https:, ws: and wss: addresses; and, for whoever takes any address, all the others.
#pragma once

#include <string>

#include "fairlead/http/client_options.hpp"

namespace fairlead::http {

// A connection of the scheme's own kind; other schemes as fairlead::connect() has them. http: and https:
// connect when the first message is sent, and take whatever the server answers with: JSON, events, or 101.
Task<ConnectResult> connect(Loop& loop, std::string uri, ConnectOptions options = ConnectOptions());

}  // namespace fairlead::http
