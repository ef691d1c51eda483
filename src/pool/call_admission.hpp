// CallAdmission: the right to be one of max_calls calls under way, at a server and in the pool. Private to
// the layer.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "pool/core.hpp"
#include "pool/gate.hpp"

namespace fairlead::pool {

// Held while a call is under way.
struct Admission {
  Admission() {}  // NOLINT: not an aggregate, see ConnectOptions

  Gate::Pass server;
  Gate::Pass all;
};

class CallAdmission {
 public:
  explicit CallAdmission(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  // Most calls need not wait. Without `all` if this one has to.
  Admission admit_at_once(ServerState& server) const;
  // Waits for the server's clocks.queue at most. Kind resource_exhausted or cancelled.
  Task<Result<Admission>> admit(std::shared_ptr<ServerState> server, std::stop_token stop,
                                Caller caller) const;

 private:
  Task<Result<Gate::Pass>> enter(std::shared_ptr<Gate> gate, std::string whose, Clock::duration patience,
                                 std::stop_token stop, Caller caller) const;

  std::shared_ptr<Core> core_;
};

}  // namespace fairlead::pool
