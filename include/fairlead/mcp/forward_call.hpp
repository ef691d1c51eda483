// ForwardCall: Client::forward() without a coroutine.
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string_view>

#include "fairlead/mcp/client.hpp"
#include "fairlead/mcp/forwarded_request.hpp"

namespace fairlead::mcp {

// Forwards a request with a progress token. A derived class implements on_response() and on_failure() (see
// Peer::OutgoingCall), and on_forwarded_progress().
class ForwardCall : public Peer::OutgoingCall {
 protected:
  // REQUIRES: `client` and `request` outlive the call. For the last three arguments see CallOptions.
  ForwardCall(Client& client, const ForwardedRequest& request,
              std::optional<std::chrono::milliseconds> timeout,
              std::optional<std::chrono::milliseconds> max_total_time, std::stop_token stop)
      : OutgoingCall(client.peer(), timeout, max_total_time, std::move(stop)),
        client_(client),
        request_(request) {}
  ~ForwardCall() = default;

  // Called with the params of each progress notification; if the request has a progress token, they contain
  // that token.
  virtual void on_forwarded_progress(const json::Raw& params) = 0;

 private:
  void on_progress(const json::Raw& params) final;
  bool wants_progress() const noexcept final { return true; }
  rpc::Rope encode(std::string_view own_id) const final {
    return client_.encode_forwarded(request_, {own_id, true});
  }
  std::string_view method() const noexcept final { return request_.method(); }

  Client& client_;
  const ForwardedRequest& request_;
};

}  // namespace fairlead::mcp
