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

  // Listens and calls back, on the loop, for each connection. Over limits.max_connections a newcomer is told
  // so and hung up on. Kind connection_failed when the address cannot be had.
  static Result<std::shared_ptr<Listener>> listen(Loop& loop, const Uri& uri, ConnectOptions options,
                                                  OnConnection accept);

  virtual ~Listener() = default;
  // Where it listens, with the real port where 0 was asked for.
  virtual std::string address() const = 0;
  // Stops accepting; connections that were accepted go on. Idempotent.
  virtual void close() = 0;
};

}  // namespace fairlead
