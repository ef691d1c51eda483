// Connections to a child process and on the stdio of this process. transport/connect.hpp connects to any
// address.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "fairlead/base/limits.hpp"
#include "fairlead/base/log.hpp"
#include "fairlead/connection/uri.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"
#include "fairlead/peer/connection.hpp"
#include "fairlead/process/child.hpp"
#include "fairlead/rpc/framing.hpp"

namespace fairlead {

// Options of a connection over a byte stream: a child process, stdio, a TCP or a Unix socket. The options of
// the HTTP client and of transport::connect() are derived from it. Has a constructor, like PeerOptions and
// CallOptions, because g++ 12 destroys a temporary aggregate twice in an expression with co_await.
struct StreamConnectOptions {
  StreamConnectOptions() {}  // NOLINT: not defaulted, see above

  rpc::Framing framing = rpc::Framing::line;
  rpc::FramingErrorPolicy on_framing_error = rpc::FramingErrorPolicy::close;
  unsigned socket_mode = 0600;  // for listeners: the mode of a Unix socket's file
  Limits limits;
  Log log;
};

using ConnectResult = Result<std::shared_ptr<Connection>>;

// A function that creates a new connection on each call.
using Connector = std::function<Task<ConnectResult>(Loop& loop, StreamConnectOptions options)>;

// Starts a child process and connects to its stdin and stdout. Closing the connection stops the child
// process.
Task<ConnectResult> connect_child(Loop& loop, ProcessSpec spec,
                                  StreamConnectOptions options = StreamConnectOptions());

// Connects on the stdin and stdout of this process. From then on descriptor 1 refers to stderr and descriptor
// 0 to /dev/null, so that other code of the program cannot corrupt the protocol, for example by printf. Fails
// with `stdio_unavailable` if stdin or stdout is closed.
ConnectResult connect_own_stdio(Loop& loop, StreamConnectOptions options = StreamConnectOptions());

}  // namespace fairlead
