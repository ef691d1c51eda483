// Changes the servers of a gateway to those of another configuration, in steps: other work of the loop is
// done between them. Private to the layer.
#pragma once

#include <functional>

#include "gateway/gateway_impl.hpp"

namespace fairlead::gateway {

class ServerReload {
 public:
  // Borrows everything; `goes_on` says after each step whether there is to be another.
  ServerReload(Loop& loop, Gateway& gateway, const ServerTable& servers, const Log& log,
               std::function<bool()> goes_on)
      : loop_(loop), gateway_(gateway), servers_(servers), log_(log), goes_on_(std::move(goes_on)) {}

  // Removes the servers that `next` does not have, then adds and updates the others. False if it ended
  // before.
  Task<bool> run(const Config& next);

 private:
  Task<bool> remove_missing(const Config& next);
  Task<bool> add_and_update(const Config& next);
  void apply(const pool::ServerSpec& spec);

  Loop& loop_;
  Gateway& gateway_;
  const ServerTable& servers_;
  const Log& log_;
  std::function<bool()> goes_on_;
};

}  // namespace fairlead::gateway
