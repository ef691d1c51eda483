// The state of every server, as JSON. Private to the layer.
#pragma once

#include "fairlead/json/raw.hpp"
#include "fairlead/loop/turn_meter.hpp"
#include "fairlead/pool/pool.hpp"
#include "gateway/server_table.hpp"

namespace fairlead::gateway {

json::Raw health_report(std::string_view status, const pool::Pool& pool, const ServerTable& servers,
                        const TurnMeter& turns);

}  // namespace fairlead::gateway
