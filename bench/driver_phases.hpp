// The two phases of the driver: sequential calls, and pipelined calls.
#pragma once

#include <cstdint>
#include <vector>

#include "driver_lines.hpp"

namespace bench {

struct Load {
  std::size_t in_flight = 64;
  double seconds = 1;
  std::uint64_t max_calls = UINT64_MAX;
};

// Makes one call at a time for `load.seconds`. Returns the time of each in microseconds.
std::vector<double> call_sequentially(Wire& wire, const Requests& requests, const Load& load);

// Keeps `load.in_flight` calls pending for `load.seconds`. Returns the number of responses. With `check`,
// every response is searched for the text it must contain; otherwise only its length is checked.
std::uint64_t call_pipelined(Wire& wire, const Requests& requests, const Load& load, bool check);

// Performs the handshake of MCP (initialize), which the SDK servers require. REQUIRES: nothing was sent on
// `wire` yet.
void initialize(Wire& wire);
// Sends the first request and waits for its response.
void call_once(Wire& wire, const Requests& requests);

}  // namespace bench
