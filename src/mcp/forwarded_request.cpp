#include "fairlead/mcp/forwarded_request.hpp"

#include "mcp/request_splice.hpp"

namespace fairlead::mcp {

rpc::Rope VerbatimRequest::encode(Revision, EncodeOptions options) const {
  return RequestSplice(message_, *facts(), options).finish();
}

}  // namespace fairlead::mcp
