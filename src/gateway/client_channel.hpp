// ClientChannel: sends notifications and requests from the gateway to a client, whose connection may run on
// another loop. Messages are posted to the client's loop, and responses back to the gateway's loop. The bytes
// queued in both directions together are limited by max_backlog_bytes of the client's connection. Private to
// the layer.
#pragma once

#include <stop_token>
#include <string>
#include <string_view>

#include "fairlead/loop/loop.hpp"
#include "fairlead/mcp/context.hpp"

namespace fairlead::gateway {

class ClientChannel {
 public:
  // `caller_loop` is the loop on which send_request() is awaited.
  ClientChannel(Loop& caller_loop, mcp::Context client)
      : caller_loop_(&caller_loop), client_(std::move(client)) {}

  // Thread-safe. On the client's loop thread the notification is sent at once, otherwise it is posted to that
  // loop. Notifications and requests that one thread sends to one client arrive in order, even through
  // several ClientChannels. Fails with `resource_exhausted` if the posted bytes would exceed
  // max_backlog_bytes.
  Result<void> notify(std::string_view method, const json::Raw& params) const;
  // Sends a request to a legacy client and returns its response. The request is cancelled when stop is
  // requested on `stop`, or when the request of the client that is being served is cancelled. Fails with
  // `resource_exhausted` as notify() does.
  Task<Result<json::Raw>> send_request(std::string method, json::Raw params, std::stop_token stop = {}) const;

 private:
  Loop* caller_loop_;
  mcp::Context client_;
};

}  // namespace fairlead::gateway
