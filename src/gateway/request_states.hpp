// RequestStates: seals the `requestState` that servers give to modern clients, so that a state can only come
// back in the request it was made for. Private to the layer.
#pragma once

#include <cstddef>
#include <string>

#include "fairlead/base/principal.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/mcp/server.hpp"
#include "fairlead/protocol/call_facts.hpp"
#include "fairlead/rpc/message.hpp"

namespace fairlead::gateway {

// Of a server's state, as JSON. What a client sends back may be twice as long.
inline constexpr std::size_t kMaxRequestStateBytes = 1u << 20;

// What a state is bound to, beside the endpoint: principal, server, method, and the tool, prompt or resource.
struct StateBinding {
  const Principal& principal;
  const std::string& server;
  const mcp::CallFacts& facts;
};

class RequestStates {
 public:
  // Seals with the keys of `front` (see mcp::Server::state_keys) and for its endpoint.
  explicit RequestStates(mcp::Server front) : front_(std::move(front)) {}

  // The result of `answer` with its state sealed; unchanged if it has none. Fails if the state is not a
  // string or exceeds kMaxRequestStateBytes.
  Result<json::Raw> seal(const rpc::Message& answer, const StateBinding& bound_to) const;
  // The state of a request as its server made it; absent if the request has none. Fails with -32602 for
  // anything but a state that was sealed with the same binding and has not expired.
  Result<json::Raw> open(const StateBinding& bound_to) const;

 private:
  std::string text_of(const StateBinding& bound_to) const;

  mcp::Server front_;
};

}  // namespace fairlead::gateway
