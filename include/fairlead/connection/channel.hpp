// make_channel(): creates an in-memory connection with two ends, each on a loop of its own, for tests and for
// programs that embed both peers. It behaves like a pipe: bounded, ordered, and closed from either end.
#pragma once

#include <memory>
#include <utility>

#include "fairlead/base/limits.hpp"
#include "fairlead/peer/connection.hpp"

namespace fairlead {

// Returns the two ends. send() on one end waits while more than `capacity` bytes are sent to the other end
// and not received there.
std::pair<std::shared_ptr<Connection>, std::shared_ptr<Connection>> make_channel(Loop& first, Loop& second,
                                                                                 std::size_t capacity = 1u
                                                                                                        << 20,
                                                                                 Limits limits = {});

}  // namespace fairlead
