// The state of a peer's requests in progress. Private to the peer.
#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "fairlead/peer/peer.hpp"

namespace fairlead {

struct Peer::ActiveRequest {
  std::string key;  // the id as spelled; for a notification, which has no id, a unique text that is not JSON
  rpc::Message message;
  std::shared_ptr<Batch> batch;
  std::stop_source stop;
  ByteCharge charge;  // the bytes of the message, charged to the client while the request is in progress
  Clock::time_point started;  // set if requests are logged
  bool cancelled = false;
  bool finished = false;
};

// Finishes a request that a direct handler serves.
class Peer::ActiveResponder final : public Responder {
 public:
  ActiveResponder(std::shared_ptr<Peer> peer, std::shared_ptr<ActiveRequest> request)
      : peer_(std::move(peer)), request_(std::move(request)) {}
  void respond(const Answer& answer) override { peer_->finish_serving(request_, answer); }

 private:
  std::shared_ptr<Peer> peer_;
  std::shared_ptr<ActiveRequest> request_;
};

// The state of a batch. Its responses are sent together, when the last of its requests has ended.
struct Peer::Batch {
  std::size_t pending = 0;  // messages that may still get a response
  std::vector<rpc::Rope> responses;
};

}  // namespace fairlead
