// The state of a peer's requests in progress. Private to the peer.
#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "fairlead/peer/peer.hpp"

namespace fairlead {

struct Peer::ActiveRequest final : Responder {
  explicit ActiveRequest(std::weak_ptr<Peer> serving_peer) : peer(std::move(serving_peer)) {}
  // Finishes the request. For direct handlers.
  void respond(const Answer& answer) override {
    if (const auto self = peer.lock()) self->finish_serving(*this, answer);
  }

  std::weak_ptr<Peer> peer;  // weak, because the peer owns its requests in progress
  std::string key;  // the id as spelled; for a notification, which has no id, a unique text that is not JSON
  rpc::Message message;
  std::shared_ptr<Batch> batch;
  std::stop_source stop;
  ByteCharge charge;  // the bytes of the message, charged to the client while the request is in progress
  Clock::time_point started;  // set if requests are logged
  bool cancelled = false;
  bool finished = false;
};

// The state of a batch. Its responses are sent together, when the last of its requests has ended.
struct Peer::Batch {
  std::size_t pending = 0;  // messages that may still get a response
  std::vector<rpc::Rope> responses;
};

}  // namespace fairlead
