// Connections to a child process and on our own stdio. transport/connect.hpp connects to any address.
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

// Has a constructor, and so do PeerOptions and CallOptions, because g++ 12 destroys a temporary aggregate
// twice in an expression with co_await.
struct ConnectOptions {
  ConnectOptions() {}  // NOLINT: not defaulted, see above

  rpc::Framing framing = rpc::Framing::line;
  rpc::FramingErrorPolicy on_framing_error = rpc::FramingErrorPolicy::close;
  unsigned socket_mode = 0600;  // listeners: permissions of a Unix socket's file
  Limits limits;
  Log log;
};

using ConnectResult = Result<std::shared_ptr<Connection>>;

// Makes a connection, as often as it is asked to.
using Connector = std::function<Task<ConnectResult>(Loop& loop, ConnectOptions options)>;

// Starts a child and talks to it over its stdin and stdout. Closing the connection stops the child.
Task<ConnectResult> connect_child(Loop& loop, ProcessSpec spec, ConnectOptions options = ConnectOptions());

// Takes over the process's own stdin and stdout: from then on descriptor 1 is stderr, so that a stray printf
// cannot spoil the protocol. Kind stdio_unavailable when one of them is closed.
ConnectResult connect_own_stdio(Loop& loop, ConnectOptions options = ConnectOptions());

}  // namespace fairlead
