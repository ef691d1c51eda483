// The two ways of calling: one after the other, and many at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "driver_lines.hpp"

namespace bench {

struct Load {
  std::size_t in_flight = 64;
  double seconds = 1;
  std::uint64_t most_calls = UINT64_MAX;
};

// One call at a time for `load.seconds`; the time of each in microseconds.
std::vector<double> call_sequentially(Wire& wire, const Requests& requests, const Load& load);

// `load.in_flight` calls under way at any time, for `load.seconds`; returns how many were answered. With
// `check`, every answer is searched for the text it must contain; otherwise only its length is looked at.
std::uint64_t call_pipelined(Wire& wire, const Requests& requests, const Load& load, bool check);

// Says hello as MCP has it, which the SDK servers insist on. `wire` carries nothing else yet.
void initialize(Wire& wire);
// The first request, and its answer.
void call_once(Wire& wire, const Requests& requests);

}  // namespace bench
