// Forwarder: sends a request to its server and brings the answer back. A modern server's questions to a
// legacy client are asked in between, round by round. Private to the layer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/json/indexed.hpp"
#include "fairlead/mcp/backend.hpp"
#include "fairlead/pool/pool.hpp"
#include "gateway/failure.hpp"
#include "gateway/passing.hpp"
#include "gateway/request_states.hpp"
#include "gateway/router.hpp"
#include "gateway/session_table.hpp"

namespace fairlead::gateway {

// The gateway's name and version, as clients and servers see it.
mcp::Implementation gateway_info();
// What a client must have declared to be asked `method`; empty: clients are never asked this.
std::string_view capability_for(std::string_view method) noexcept;

// A client's request while its server works on it; found again in pool::ClientCalls::caller.
struct ForwardedCall {
  explicit ForwardedCall(mcp::Context asking) : context(std::move(asking)) {}
  mcp::Context context;
};

class Forwarder : public std::enable_shared_from_this<Forwarder> {
 public:
  Forwarder(Loop& loop, std::shared_ptr<pool::Pool> pool, std::shared_ptr<SessionTable> sessions,
            RequestStates states, FailurePolicy failures)
      : loop_(loop),
        pool_(std::move(pool)),
        sessions_(std::move(sessions)),
        states_(std::move(states)),
        failures_(failures) {}

  // Errors are redacted: those of servers may show the secrets that they were connected with.
  Task<Answer> forward(mcp::BackendRequest request, Route route);

 private:
  // What of one call stays the same from round to round.
  struct Call;
  // What a round took from the one before, and gives to the next.
  struct Round {
    Round() {}  // NOLINT: not an aggregate, see ConnectOptions

    json::Raw answers;  // of the client to the server's questions
    json::Raw state;    // the server's
  };

  // References below are to objects in the frame of forward(), which waits for all of them.
  pool::ForwardOptions options_for(const std::shared_ptr<Call>& shared_call) const;
  std::shared_ptr<const mcp::OutgoingRequest> outgoing(const Call& call, const Round& round) const;
  // The answer for the client; nullopt if the server asks for input first.
  std::optional<Answer> answer_for_client(const Call& call, const pool::ForwardedAnswer& answer) const;
  Error remote_error(const Call& call, Error error) const;
  Error redacted(const Error& error) const;
  // Asks the client what `result` asks for.
  Task<Result<void>> next_round(const Call& call, const json::Indexed& result, Round& round) const;
  Task<Result<json::Raw>> ask_client(const Call& call, json::Raw questions) const;

  Loop& loop_;
  std::shared_ptr<pool::Pool> pool_;
  std::shared_ptr<SessionTable> sessions_;
  RequestStates states_;
  FailurePolicy failures_;
};

}  // namespace fairlead::gateway
