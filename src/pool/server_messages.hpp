// What a server sends by itself, on its way to UpstreamHandlers. Private to the layer.
#pragma once

#include <memory>
#include <string_view>

#include "fairlead/json/raw.hpp"
#include "fairlead/peer/methods.hpp"

namespace fairlead::pool {

class ManagedUpstream;

// `upstream` may be null: it is gone.
Task<Answer> on_server_request(const std::shared_ptr<ManagedUpstream>& upstream, Request request);
void on_server_notification(const std::shared_ptr<ManagedUpstream>& upstream, std::string_view method,
                            const json::Raw& params);

}  // namespace fairlead::pool
