// EncodedCall: what is known of a request that was encoded for one server, attached to its rope. A transport
// that repeats parts of a request in headers need not read the bytes again.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "fairlead/protocol/call_facts.hpp"
#include "fairlead/protocol/revision.hpp"

namespace fairlead::mcp {

class EncodedCall final : public rpc::Annotation {
 public:
  EncodedCall(std::shared_ptr<const CallFacts> request, std::string request_id, std::string request_target,
              Revision server)
      : facts(std::move(request)),
        id(std::move(request_id)),
        target(std::move(request_target)),
        revision(server) {}

  std::shared_ptr<const CallFacts> facts;  // of the request as it came; its arguments are sent unchanged
  std::string id;                          // under which it is sent, as spelled
  std::string target;                      // as CallFacts::target_text(), by the server's own name
  Revision revision;                       // of the server it was encoded for
};

}  // namespace fairlead::mcp
