// Acceptor: the accept loop of one listening socket. Private to the library.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "fairlead/base/log.hpp"
#include "fairlead/base/log_rate_limit.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/loop/descriptor.hpp"
#include "fairlead/loop/timer.hpp"

namespace fairlead {

class Acceptor : public std::enable_shared_from_this<Acceptor> {
 public:
  // Called on the loop thread with each accepted socket, which is non-blocking and close-on-exec.
  using OnAccept = std::function<void(UniqueFd)>;

  // Starts to accept connections on the socket `listening`. `address` is the name of the listener in the log.
  // When the process is out of descriptors or memory, the acceptor retries after a delay.
  static Result<std::shared_ptr<Acceptor>> start(Loop& loop, UniqueFd listening, std::string address, Log log,
                                                 OnAccept on_accept);
  ~Acceptor() { close(); }

  // Stops accepting: `on_accept` is not called again. Idempotent.
  void close();
  bool is_open() const noexcept { return socket_.is_open(); }

 private:
  Acceptor(Loop& loop, Descriptor socket, std::string address, Log log, OnAccept on_accept);

  void wait_for_connections();
  void accept_some();

  Descriptor socket_;
  Timer retry_timer_;
  std::string address_;
  Log log_;
  LogRateLimit accept_error_log_;
  OnAccept on_accept_;
};

}  // namespace fairlead
