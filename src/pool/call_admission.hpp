// CallAdmission: acquires the permits that a call needs under the max_calls of its server and of the pool.
// Private to the layer.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "pool/pool_core.hpp"
#include "pool/semaphore.hpp"

namespace fairlead::pool {

// The permits of an active call.
struct Admission {
  Admission() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  Semaphore::Permit server_permit;
  Semaphore::Permit pool_permit;
};

class CallAdmission {
 public:
  explicit CallAdmission(std::shared_ptr<PoolCore> core) : core_(std::move(core)) {}

  // Acquires both permits without waiting. If `pool_permit` of the result is empty, the call has to wait: use
  // admit().
  Admission try_admit(ServerContext& server) const;
  // Waits until both permits are available. Fails with `resource_exhausted` when clocks.queue of the server
  // has elapsed, or with `cancelled`.
  Task<Result<Admission>> admit(std::shared_ptr<ServerContext> server, std::stop_token stop,
                                CallerKey caller) const;

 private:
  Task<Result<Semaphore::Permit>> acquire_permit(std::shared_ptr<Semaphore> semaphore, std::string scope,
                                                 Clock::duration timeout, std::stop_token stop,
                                                 CallerKey caller) const;

  std::shared_ptr<PoolCore> core_;
};

}  // namespace fairlead::pool
