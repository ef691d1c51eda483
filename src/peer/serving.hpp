// What a peer remembers of requests under way. Private to the peer.
#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "fairlead/peer/peer.hpp"

namespace fairlead {

struct Peer::Serving {
  std::string key;  // the id as spelled; notifications, which have none, get a key that is no JSON
  rpc::Message message;
  std::shared_ptr<Batch> batch;
  std::stop_source stop;
  ByteCharge charge;  // for the message, while it is served
  Clock::time_point started = Clock::now();
  bool cancelled = false;
};

// A batch is answered as a whole, when the last of its requests has its answer.
struct Peer::Batch {
  std::size_t waiting = 0;
  std::vector<rpc::Rope> answers;
};

}  // namespace fairlead
