// CallForwarder: forwards calls to servers: admission, selection and start of the upstream, sending, and
// retries. Private to the layer.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>

#include "fairlead/pool/pool.hpp"
#include "pool/call_admission.hpp"
#include "pool/server_registry.hpp"

namespace fairlead::pool {

// Implements the functions of Pool with the same names.
class CallForwarder : public std::enable_shared_from_this<CallForwarder> {
 public:
  CallForwarder(std::shared_ptr<PoolCore> core, std::shared_ptr<ServerRegistry> registry)
      : core_(core), registry_(std::move(registry)), admission_(std::move(core)) {}

  // A call whose first attempt has failed, and its permits. For a call that was not attempted, all are empty.
  struct Attempted {
    Attempted() {}  // NOLINT: not an aggregate, see StreamConnectOptions

    unsigned count = 0;
    std::optional<Error> failure;  // of an attempt that the server may have executed
    Admission admission;
  };

  Task<Result<ForwardedAnswer>> forward(Target target, std::shared_ptr<const mcp::ForwardedRequest> request,
                                        ForwardOptions options, Attempted attempted = Attempted());
  bool try_forward(const std::shared_ptr<DirectForward>& call);
  Task<Result<Lease>> acquire(Target target, std::stop_token stop, StartPriority priority,
                              const Principal* client);
  Result<Lease> keep_alive(const std::shared_ptr<Upstream>& upstream);
  Result<void> notify(const Target& target, std::string_view method, const json::Raw& params);
  Task<Result<std::shared_ptr<Upstream>>> warm(Target target, std::stop_token stop, const Principal* client);

 private:
  using UpstreamPtr = ServerRegistry::UpstreamPtr;

  // Returns the upstream that serves `target`, and starts it if necessary. The wait for the start counts as a
  // waiting call of `client` (a client key; see CallerKey).
  Task<Result<UpstreamPtr>> ready_upstream(const Target& target, std::stop_token stop,
                                           StartPriority priority = StartPriority::call,
                                           std::string client = std::string());

  std::shared_ptr<PoolCore> core_;
  std::shared_ptr<ServerRegistry> registry_;
  CallAdmission admission_;
};

}  // namespace fairlead::pool
