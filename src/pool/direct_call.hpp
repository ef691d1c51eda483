// DirectCall: the first attempt of a forwarded call, without a coroutine. If the call has to be retried, a
// coroutine of the CallForwarder continues it. Private to the layer.
#pragma once

#include <boost/intrusive/list.hpp>
#include <memory>
#include <optional>

#include "fairlead/mcp/forward_call.hpp"
#include "fairlead/pool/pool.hpp"
#include "pool/active_calls.hpp"
#include "pool/call_admission.hpp"
#include "pool/call_forwarder.hpp"
#include "pool/upstream.hpp"

namespace fairlead::pool {

// Returns whether a call may be sent again after its first attempt has failed with `error`.
bool may_retry(const Error& error, const mcp::ForwardedRequest& request, const ForwardOptions& options,
               const ActiveCall& attempt);

class DirectCall final : private mcp::ForwardCall, public std::enable_shared_from_this<DirectCall> {
 public:
  using UpstreamPtr = ServerRegistry::UpstreamPtr;
  using ConnectionPtr = std::shared_ptr<UpstreamConnection>;
  using Hook = boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

  // Sends `forward`, which gets the outcome. REQUIRES: `upstream` is ready, and `connection`, which has a
  // client(), is its connection.
  static void start(std::shared_ptr<CallForwarder> forwarder, const UpstreamPtr& upstream,
                    ConnectionPtr&& connection, Admission&& admission,
                    const std::shared_ptr<DirectForward>& forward);
  DirectCall(std::shared_ptr<CallForwarder>&& forwarder, const UpstreamPtr& upstream,
             ConnectionPtr&& connection, Admission&& admission,
             const std::shared_ptr<DirectForward>& forward);

 private:
  // The direct calls of a loop. They own themselves while they are in flight; the destructor of the loop, and
  // thus of this object, destroys those that are left.
  class InFlight;
  struct OwnReference : Hook {
    std::shared_ptr<DirectCall> call;
  };

  void on_response(rpc::Message&& response) override;
  void on_failure(Error reason) override;
  void on_forwarded_progress(const json::Raw& params) override;
  // Ends the ownership of this object by itself.
  std::shared_ptr<DirectCall> release_own_reference();
  // Releases what the call occupies, and passes the outcome to forward_, unless it has one.
  void complete(const rpc::Message& response, mcp::Revision revision);
  void complete(const Error& error);
  std::shared_ptr<DirectForward> release_forward();
  static Task<void> retry(std::shared_ptr<DirectCall> self, CallForwarder::Attempted attempted);

  std::shared_ptr<CallForwarder> forwarder_;
  ConnectionPtr connection_;
  Admission admission_;
  std::shared_ptr<DirectForward> forward_;  // null when it has its outcome
  std::optional<ActiveCall> active_;
  OwnReference own_reference_;
};

}  // namespace fairlead::pool
