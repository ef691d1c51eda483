// How MCP has it on a stream, for both sides of it.
#pragma once

#include "fairlead/peer/peer.hpp"
#include "fairlead/rpc/codes.hpp"

namespace fairlead::mcp {

inline Dialect dialect() {
  Dialect made;
  made.cancel_method = "notifications/cancelled";
  made.cancel_id_key = "requestId";
  made.answer_cancelled = false;
  made.progress_method = "notifications/progress";
  made.progress_token_key = "progressToken";
  // The codes from -32000 down belong to the protocol; what we have to say that it does not name is an
  // internal error with a message.
  made.busy_code = rpc::kInternalError;
  made.never_in_batch = "initialize";
  return made;
}

}  // namespace fairlead::mcp
