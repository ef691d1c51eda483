// ServerReload: changes the servers of a gateway to those of a new configuration, in slices. Private to the
// layer.
#pragma once

#include <functional>

#include "gateway/gateway_impl.hpp"

namespace fairlead::gateway {

class ServerReload {
 public:
  // `should_continue` is called after each server; it returns false to end the reload early. REQUIRES: the
  // arguments outlive this object.
  ServerReload(Loop& loop, Gateway& gateway, const ServerTable& servers, const Log& log,
               std::function<bool()> should_continue)
      : loop_(loop),
        gateway_(gateway),
        servers_(servers),
        log_(log),
        should_continue_(std::move(should_continue)) {}

  // See Gateway::reload().
  static Task<Result<void>> reload(std::shared_ptr<GatewayImpl> gateway, Config next);

  // Removes the servers that are not in `next`, then adds and updates the others. Returns false if the reload
  // ended early.
  Task<bool> run(const Config& next);

 private:
  Task<bool> remove_missing(const Config& next);
  Task<bool> add_and_update(const Config& next);
  void apply(const pool::ServerSpec& spec);

  Loop& loop_;
  Gateway& gateway_;
  const ServerTable& servers_;
  const Log& log_;
  std::function<bool()> should_continue_;
};

}  // namespace fairlead::gateway
