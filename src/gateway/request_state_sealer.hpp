// RequestStateSealer: seals the `requestState` that servers return to modern clients. A client sends the
// state back in the next round; it is accepted only from the same principal and for the same request. Private
// to the layer.
#pragma once

#include <cstddef>
#include <string>

#include "fairlead/base/principal.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/mcp/server.hpp"
#include "fairlead/protocol/call_facts.hpp"
#include "fairlead/rpc/message.hpp"

namespace fairlead::gateway {

// The limit max_request_state_bytes on a server's state, as JSON. The sealed state in a client's request may
// be twice as long.
inline constexpr std::size_t kMaxRequestStateBytes = 1u << 20;

// What a state is bound to, in addition to the endpoint: the principal, the server, and by `facts` the method
// and the tool, prompt or resource.
struct StateBinding {
  const Principal& principal;
  const std::string& server;
  const mcp::CallFacts& facts;
};

class RequestStateSealer {
 public:
  // Seals with the keys of `front` (see mcp::Server::request_state_keys) and binds states to its endpoint.
  explicit RequestStateSealer(mcp::Server front) : front_(std::move(front)) {}

  // Returns the result of `response` with its `requestState` sealed; the unchanged result if it has none.
  // Fails if the state is not a string or exceeds kMaxRequestStateBytes.
  Result<json::Raw> seal(const rpc::Message& response, const StateBinding& binding) const;
  // Returns the server's own state from the sealed `requestState` in the client's request `binding.facts`; an
  // absent value if the request has none. Fails with -32602 unless the state was sealed with the same binding
  // and has not expired.
  Result<json::Raw> open(const StateBinding& binding) const;

 private:
  std::string binding_text(const StateBinding& binding) const;

  mcp::Server front_;
};

}  // namespace fairlead::gateway
