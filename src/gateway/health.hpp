// What /health tells: whether the gateway serves, how many servers, tools, sessions and calls there are, and
// the state of every server, as JSON. Private to the layer.
#pragma once

#include "fairlead/gateway/gateway.hpp"
#include "fairlead/loop/turn_meter.hpp"
#include "fairlead/pool/pool.hpp"
#include "gateway/catalogue.hpp"
#include "gateway/server_table.hpp"

namespace fairlead::gateway {

struct HealthInputs {
  const pool::Pool& pool;
  const ServerTable& servers;
  const Catalogue& catalogue;
  const TurnMeter& turns;
  std::size_t sessions;
  Clock::duration uptime;
  bool stopping;
  bool details;  // the texts of errors, connections and whose an upstream is; see FailurePolicy
};

Health health_report(const HealthInputs& inputs);

}  // namespace fairlead::gateway
