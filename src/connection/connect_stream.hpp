// connect_stream(): connects to an address over a byte stream. Private to the library; transport::connect()
// supports all schemes.
#pragma once

#include "fairlead/connection/connect.hpp"

namespace fairlead {

// Supports stdio:, tcp: and unix:. Fails with `spawn`, `connection_failed` or `timeout`
// (limits.connect_timeout), and with `validation` for any other scheme.
Task<ConnectResult> connect_stream(Loop& loop, Uri uri, StreamConnectOptions options);

}  // namespace fairlead
