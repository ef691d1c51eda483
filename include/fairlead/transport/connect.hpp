// connect(): a connection to any address.
#pragma once

#include <chrono>
#include <string>

#include "fairlead/http/client_options.hpp"

namespace fairlead::transport {

// How often an interrupted stream of events is taken up again.
struct ReconnectLimits {
  std::size_t max_resumptions = 5;  // of one stream in a row, without an event in between
  // A server's `retry` cannot make a stream reconnect sooner than this; and once it has reconnected
  // reconnect_burst times within a minute, not sooner than after a second.
  std::chrono::milliseconds min_reconnect_delay{100};
  std::size_t reconnect_burst = 30;
};

struct ConnectOptions : http::ClientOptions, ReconnectLimits {
  ConnectOptions() {}  // NOLINT: not defaulted, see fairlead::ConnectOptions
};

// Connects to a stdio:, tcp:, unix:, http:, https:, ws: or wss: address (see Uri). http: and https: connect
// when the first message is sent, and accept what the server answers with: JSON, events, or 101. Errors:
// validation for an address that is none, spawn, connection_failed, timeout (limits.connect_timeout).
Task<ConnectResult> connect(Loop& loop, std::string uri, ConnectOptions options = ConnectOptions());

}  // namespace fairlead::transport
