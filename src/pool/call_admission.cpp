#include "pool/call_admission.hpp"

#include "fairlead/process/failure.hpp"

namespace fairlead::pool {

Task<Result<Semaphore::Permit>> CallAdmission::acquire_permit(std::shared_ptr<Semaphore> semaphore,
                                                              std::string scope, Clock::duration timeout,
                                                              std::stop_token stop, CallerKey caller) const {
  const std::shared_ptr<PoolCore> core = core_;
  const Result<WaitingCalls::Entry> entry = core->waiting_calls.add(caller.client, timeout);
  if (!entry) co_return entry.error();
  Semaphore::Permit permit = co_await semaphore->acquire(timeout, stop, false, std::move(caller));
  if (permit) co_return permit;
  if (stop.stop_requested())
    co_return with_failure_code(Error(ErrorKind::cancelled, "cancelled while waiting for max_calls"));
  co_return limit_error("max_calls (" + std::to_string(semaphore->limit()) + ") calls of " + scope +
                            " are active, and none ended in time",
                        timeout);
}

Admission CallAdmission::try_admit(ServerContext& server) const {
  Admission admission;
  admission.server_permit = server.call_permits->try_acquire();
  if (admission.server_permit) admission.pool_permit = core_->call_permits->try_acquire();
  return admission;
}

Task<Result<Admission>> CallAdmission::admit(std::shared_ptr<ServerContext> server, std::stop_token stop,
                                             CallerKey caller) const {
  const Clock::duration timeout = server->spec.clocks.queue;
  Admission admission;
  admission.server_permit = server->call_permits->try_acquire();
  if (!admission.server_permit) {
    Result<Semaphore::Permit> permit =
        co_await acquire_permit(server->call_permits, "server " + server->spec.name, timeout, stop, caller);
    if (!permit) co_return permit.error();
    admission.server_permit = std::move(*permit);
  }
  admission.pool_permit = core_->call_permits->try_acquire();
  if (!admission.pool_permit) {
    Result<Semaphore::Permit> permit =
        co_await acquire_permit(core_->call_permits, "all servers", timeout, stop, std::move(caller));
    if (!permit) co_return permit.error();
    admission.pool_permit = std::move(*permit);
  }
  co_return admission;
}

}  // namespace fairlead::pool
