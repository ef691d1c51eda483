#include "pool/call_admission.hpp"

#include "fairlead/process/failure.hpp"

namespace fairlead::pool {

Task<Result<Gate::Pass>> CallAdmission::enter(std::shared_ptr<Gate> gate, std::string whose,
                                              Clock::duration patience, std::stop_token stop,
                                              Caller caller) const {
  const std::shared_ptr<Core> core = core_;
  const Result<WaitingCalls::Counted> counted = core->waiting_calls.add(caller.client, patience);
  if (!counted) co_return counted.error();
  Task<Gate::Pass> entering = gate->enter(patience, stop, false, std::move(caller));
  Gate::Pass pass = co_await entering;
  if (pass) co_return pass;
  if (stop.stop_requested())
    co_return with_failure_code(Error(ErrorKind::cancelled, "given up before its turn came"));
  co_return limit_reached("max_calls (" + std::to_string(gate->limit()) + ") calls of " + whose +
                              " are under way, and none ended in time",
                          patience);
}

Admission CallAdmission::admit_at_once(ServerState& server) const {
  Admission admission;
  admission.server = server.calls->try_enter();
  if (admission.server) admission.all = core_->calls->try_enter();
  return admission;
}

Task<Result<Admission>> CallAdmission::admit(std::shared_ptr<ServerState> server, std::stop_token stop,
                                             Caller caller) const {
  const Clock::duration patience = server->spec.clocks.queue;
  Admission admission;
  admission.server = server->calls->try_enter();
  if (!admission.server) {
    Task<Result<Gate::Pass>> entering =
        enter(server->calls, "server " + server->spec.name, patience, stop, caller);
    Result<Gate::Pass> entered = co_await entering;
    if (!entered) co_return entered.error();
    admission.server = std::move(*entered);
  }
  admission.all = core_->calls->try_enter();
  if (!admission.all) {
    Task<Result<Gate::Pass>> entering = enter(core_->calls, "all servers", patience, stop, std::move(caller));
    Result<Gate::Pass> entered = co_await entering;
    if (!entered) co_return entered.error();
    admission.all = std::move(*entered);
  }
  co_return admission;
}

}  // namespace fairlead::pool
