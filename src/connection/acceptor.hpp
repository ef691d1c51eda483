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
  // Called on the loop with each accepted socket, non-blocking and close-on-exec.
  using OnAccept = std::function<void(UniqueFd)>;

  // `address` names the listener in the log. When descriptors or memory run out, the acceptor pauses and
  // tries again.
  static Result<std::shared_ptr<Acceptor>> start(Loop& loop, UniqueFd listening, std::string address, Log log,
                                                 OnAccept accept);
  ~Acceptor() { close(); }

  // Idempotent. `accept` is not called again.
  void close();
  bool open() const noexcept { return socket_.open(); }

 private:
  Acceptor(Loop& loop, Descriptor socket, std::string address, Log log, OnAccept accept);

  void wait();
  void accept_some();

  Descriptor socket_;
  Timer pause_;
  std::string address_;
  Log log_;
  LogRateLimit fault_log_;
  OnAccept accept_;
};

}  // namespace fairlead
