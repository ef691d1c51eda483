// An in-memory connection: two ends, each on a loop of its own choice, for tests and for embedding both sides
// in one program. It behaves as a pipe does: bounded, ordered, closed from either end.
#pragma once

#include <memory>
#include <utility>

#include "fairlead/base/limits.hpp"
#include "fairlead/peer/connection.hpp"

namespace fairlead {

// `capacity` bytes may be on their way in each direction before send() waits.
std::pair<std::shared_ptr<Connection>, std::shared_ptr<Connection>> make_channel(Loop& first, Loop& second,
                                                                                 std::size_t capacity = 1u
                                                                                                        << 20,
                                                                                 Limits limits = {});

}  // namespace fairlead
