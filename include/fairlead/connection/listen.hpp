// Listener: accepts connections on a TCP port or a Unix socket.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "fairlead/connection/connect.hpp"

namespace fairlead {

class Listener {
 public:
  using OnConnection = std::function<void(std::shared_ptr<Connection>)>;

  // Listens on `uri` and calls `on_connection` on the loop thread for each connection. If
  // limits.max_connections are open, a further connection gets an error message and is closed. Fails with
  // `connection_failed` if the address cannot be used, and with `validation` if its scheme is not tcp: or
  // unix:.
  static Result<std::shared_ptr<Listener>> listen(Loop& loop, const Uri& uri, StreamConnectOptions options,
                                                  OnConnection on_connection);

  virtual ~Listener() = default;
  // Returns the listening address, with the actual port if port 0 was requested.
  virtual std::string address() const = 0;
  // Stops accepting; accepted connections stay open. Idempotent.
  virtual void close() = 0;
};

}  // namespace fairlead
