// dialect(): the methods and member names with which MCP cancels requests and reports progress, for Peer.
#pragma once

#include "fairlead/peer/peer.hpp"
#include "fairlead/rpc/codes.hpp"

namespace fairlead::mcp {

inline Dialect dialect() {
  Dialect result;
  result.cancel_method = "notifications/cancelled";
  result.cancel_id_key = "requestId";
  result.respond_to_cancelled = false;
  result.progress_method = "notifications/progress";
  result.progress_token_key = "progressToken";
  // MCP reserves the error codes from -32000 down and defines none for this case, so the error is an internal
  // error with a message.
  result.busy_code = rpc::kInternalError;
  result.never_in_batch = "initialize";
  return result;
}

}  // namespace fairlead::mcp
