// EncodedCall: describes an outgoing request and is attached to its Rope. A transport that copies values of
// the request into HTTP headers gets them from here instead of parsing the request again.
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

  std::shared_ptr<const CallFacts> facts;  // of the request as received; its arguments are sent unchanged
  std::string id;                          // the id of the outgoing request, as JSON
  std::string target;                      // CallFacts::target_text(), but with the name that the server uses
  Revision revision;                       // the revision of the server
};

}  // namespace fairlead::mcp
