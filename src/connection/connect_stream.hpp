// Connections that carry frames on a byte stream, by address. Private to the library: transport::connect()
// takes every scheme.
#pragma once

#include "fairlead/connection/connect.hpp"

namespace fairlead {

// stdio:, tcp: and unix:. Errors: spawn, connection_failed, timeout (limits.connect_timeout); validation for
// any other scheme.
Task<ConnectResult> connect_stream(Loop& loop, Uri uri, ConnectOptions options);

}  // namespace fairlead
