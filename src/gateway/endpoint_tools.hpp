// EndpointTools: tools that the gateway itself offers at an endpoint, such as the meta-tools of the mode
// `discover`. Unlike tools of Gateway::add_tool(), they get the client's request and return the response
// without decoding either, so they can forward a call to a server. Private to the layer.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string_view>
#include <vector>

#include "fairlead/mcp/backend.hpp"
#include "fairlead/registry/model.hpp"

namespace fairlead::gateway {

class Catalogue;

// What an endpoint offers to its EndpointTools. Valid as long as the endpoint's backend exists.
class EndpointView {
 public:
  virtual ~EndpointView() = default;
  // Returns the tools, prompts and resources that this client sees at the endpoint.
  virtual std::shared_ptr<const Catalogue> catalogue(std::string_view session,
                                                     const Principal& principal) = 0;
  // Waits as a list request does: until an attempt to fetch its lists has ended for every server that exists
  // for the client, but at most for list_wait.
  virtual Task<void> wait_for_lists(PrincipalPtr principal, std::stop_token stop) = 0;
  // Serves a tools/call of a tool that catalogue() contains, exactly as if the client had sent `request`: the
  // same rules, limits, progress, cancellation and input requests. A tool that catalogue() does not contain
  // is answered as an unknown tool.
  virtual Task<Answer> forward(mcp::BackendRequest request) = 0;
};

class EndpointTools {
 public:
  virtual ~EndpointTools() = default;

  // Returns the tools as elements of a tools/list result. They precede the tools of the servers.
  virtual std::vector<json::Raw> entries(mcp::Revision revision) const = 0;
  virtual bool has_tool(std::string_view name) const = 0;
  // Serves a tools/call of one of these tools. REQUIRES: `view` outlives the task.
  virtual Task<Answer> call(EndpointView& view, mcp::BackendRequest request) = 0;
};

// Returns the tools of an endpoint; null if it has none. Called when the endpoint is first used, and when it
// has changed.
using EndpointToolsFactory =
    std::function<std::shared_ptr<EndpointTools>(const registry::Endpoint& endpoint)>;

}  // namespace fairlead::gateway
