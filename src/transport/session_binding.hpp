// SessionBinding: what an endpoint stores with each session and WebSocket. Private to src/transport.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fairlead/loop/loop.hpp"
#include "fairlead/transport/endpoint.hpp"

namespace fairlead::transport {

struct SessionBinding {
  std::shared_ptr<Application> application;  // serves the session; null after the session has ended
  std::uint64_t number = 0;                  // identifies the session for operators
  std::string client;                        // name and version; empty if unknown
  Clock::time_point since = Clock::now();
};

}  // namespace fairlead::transport
