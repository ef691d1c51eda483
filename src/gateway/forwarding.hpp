// Forwarder: forwards a request to its server and returns the response. If a modern server responds that it
// requires input of the user (`input_required`) and the client is a legacy client, the forwarder requests the
// input from the client and calls the server again with it. Each such call is a round. Private to the layer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/json/indexed_raw.hpp"
#include "fairlead/mcp/backend.hpp"
#include "fairlead/pool/pool.hpp"
#include "gateway/failure.hpp"
#include "gateway/request_rewriter.hpp"
#include "gateway/request_state_sealer.hpp"
#include "gateway/router.hpp"
#include "gateway/session_table.hpp"

namespace fairlead::gateway {

// Returns the gateway's name and version, as clients and servers see them.
mcp::Implementation gateway_info();
// Returns the client capability that `method` requires, such as "sampling" for "sampling/createMessage";
// empty if `method` is not a request from servers to clients. Only a client that has declared the capability
// may be sent the request.
std::string_view client_capability_for(std::string_view method) noexcept;

// A client's request while its server processes it. Accessible as pool::ClientCallSummary::call_context.
struct ForwardedCall {
  explicit ForwardedCall(mcp::Context client) : context(std::move(client)) {}
  mcp::Context context;
};

class Forwarder : public std::enable_shared_from_this<Forwarder> {
 public:
  Forwarder(Loop& loop, std::shared_ptr<pool::Pool> pool, std::shared_ptr<SessionTable> sessions,
            RequestStateSealer state_sealer, FailurePolicy failure_policy)
      : loop_(loop),
        pool_(std::move(pool)),
        sessions_(std::move(sessions)),
        state_sealer_(std::move(state_sealer)),
        failure_policy_(std::move(failure_policy)),
        server_info_(make_server_info()) {}

  // Returns the response for the client. Errors are redacted, because an error of a server can contain
  // secrets that were passed to it.
  Task<Answer> forward(mcp::BackendRequest request, Route route);
  // Does the same without a coroutine, if the call can be sent without waiting; see
  // mcp::Backend::serve_directly().
  bool try_forward(mcp::DirectRequest&& request, Route&& route, const std::shared_ptr<Responder>& responder);

 private:
  // The parts of a forwarded call that are the same in all rounds.
  struct Call;
  struct DirectCall;
  // What is added to the request of one round. Obtained from the result of the round before.
  struct Round {
    Round() {}  // NOLINT: not an aggregate, see StreamConnectOptions

    json::Raw input_responses;  // the client's responses to the input requests of the server
    json::Raw request_state;    // the opaque `requestState` that the server returned
  };

  // Returns the response for the client. `first_answer` is the outcome of the first call of the server, if
  // that call has been made already.
  Task<Answer> run_rounds(std::shared_ptr<Call> shared_call, Round round,
                          std::optional<Result<pool::ForwardedAnswer>> first_answer);
  // Responds to a direct call whose first outcome is `answer`.
  static Task<void> continue_call(std::shared_ptr<DirectCall> call, Result<pool::ForwardedAnswer> answer);
  // References that are passed to the following functions refer to objects that outlive the tasks: in the
  // coroutine frame of run_rounds(), which awaits them, or in a DirectCall.
  // Sets all options except call_context.
  void set_options(const Call& call, pool::ForwardOptions& options) const;
  // Returns the request that is sent to the server in this round.
  std::shared_ptr<const mcp::ForwardedRequest> make_request(const Call& call, const Round& round) const;
  // Returns the response for the client; nullopt if the server requires input from a legacy client first.
  // `response` is a result, from a server of `revision`.
  std::optional<Answer> response_for_client(const Call& call, const rpc::Message& response,
                                            mcp::Revision revision) const;
  // Records the URL elicitations in `error`, an error response of the server: when the server later reports
  // that one of them is complete, that notification is forwarded to the client. Returns `error` unchanged.
  Error record_url_elicitations(const Call& call, Error error) const;
  static std::string make_server_info();
  // Returns the error without secrets.
  Error redacted(const Error& error) const;
  // Sends the input requests in `result` to the client, and sets `round` for the next call of the server.
  Task<Result<void>> prepare_next_round(const Call& call, const json::IndexedRaw& result, Round& round) const;
  // Returns the client's responses to `input_requests`, an object, as an object with the same keys.
  Task<Result<json::Raw>> request_input(const Call& call, json::Raw input_requests) const;

  Loop& loop_;
  std::shared_ptr<pool::Pool> pool_;
  std::shared_ptr<SessionTable> sessions_;
  RequestStateSealer state_sealer_;
  FailurePolicy failure_policy_;
  std::string server_info_;  // the JSON of gateway_info()
};

}  // namespace fairlead::gateway
