// Recognises the address of this gateway in the entries of clients. Private to the layer.
#pragma once

#include <string>
#include <vector>

namespace fairlead::clients {

// Returns whether `url` leads to the MCP paths of a gateway with one of the URLs `own_urls`: the scheme
// (WebSocket counts as HTTP), host and port are equal, and the path is /mcp, /sse, /messages or below. All
// names of this machine are equal. A path before /mcp in one of `own_urls` is that of a reverse proxy, and
// must be there in `url` too.
bool is_own_url(const std::string& url, const std::vector<std::string>& own_urls);

}  // namespace fairlead::clients
