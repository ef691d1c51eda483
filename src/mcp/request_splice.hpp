// RequestSplice: changes a request that came from elsewhere for the server it goes to, and leaves every other
// byte as it is. Private to the library.
#pragma once

#include <string>
#include <string_view>

#include "fairlead/mcp/outgoing_request.hpp"
#include "json/splice.hpp"

namespace fairlead::mcp {

class RequestSplice {
 public:
  // Puts the new id in the place of the request's id and progress token. `request` and `facts` outlive this.
  RequestSplice(const rpc::Message& request, const CallFacts& facts, OutgoingRequest::Sending sending);

  // The arguments are values of `facts`; absent ones are left alone.
  void replace(json::View value, Bytes with) { splice_.replace(value.text(), std::move(with)); }
  void remove(json::View value);
  // Adds a member to `_meta`, which is made if there is none. REQUIRES: the key has nothing to escape.
  void add_to_meta(std::string_view key, std::string_view value);
  // Adds a member to `params`. REQUIRES: the request has an object there.
  void add_to_params(std::string_view key, std::string_view value);

  rpc::Rope finish();

 private:
  const rpc::Message& request_;
  const CallFacts& facts_;
  json::Splice splice_;
  std::string new_meta_;  // the members of a `_meta` that is made
};

}  // namespace fairlead::mcp
