// Passes requests and notifications of servers to UpstreamHandlers. Private to the layer.
#pragma once

#include <memory>
#include <string_view>

#include "fairlead/json/raw.hpp"
#include "fairlead/peer/methods.hpp"

namespace fairlead::pool {

class ManagedUpstream;

// `upstream` is null if the upstream has been destroyed. Then a request is rejected, and a notification
// dropped.
Task<Answer> handle_server_request(const std::shared_ptr<ManagedUpstream>& upstream, Request request);
void handle_server_notification(const std::shared_ptr<ManagedUpstream>& upstream, std::string_view method,
                                const json::Raw& params);

}  // namespace fairlead::pool
