// ClientLink: the gateway's way to a client. Everything that is said to a client by itself, and everything it
// is asked, is posted to the loop that the client lives on; what waits for either loop is limited by
// max_backlog_bytes of the client's connection. Private to the layer.
#pragma once

#include <stop_token>
#include <string>
#include <string_view>

#include "fairlead/loop/loop.hpp"
#include "fairlead/mcp/context.hpp"

namespace fairlead::gateway {

class ClientLink {
 public:
  // `here` is the loop that ask() is awaited on.
  ClientLink(Loop& here, mcp::Context client) : here_(&here), client_(std::move(client)) {}

  // From any thread. On the client's own loop it is sent at once, otherwise it is posted there: what one
  // thread sends by any links to one client, questions included, keeps its order. Fails with `resource
  // exhausted` when it would wait for that loop over max_backlog_bytes.
  Result<void> notify(std::string_view method, const json::Raw& params) const;
  // A request to a client of the legacy era, given up when `stop` or the client's own request is. Fails over
  // max_backlog_bytes as notify() does.
  Task<Result<json::Raw>> ask(std::string method, json::Raw params, std::stop_token stop = {}) const;

 private:
  Loop* here_;
  mcp::Context client_;
};

}  // namespace fairlead::gateway
