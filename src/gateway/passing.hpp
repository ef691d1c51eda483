// What has to change in a request and in its result when they pass from a client of one era to a server of
// perhaps the other. Where both speak the same era, nothing does but the name; every byte that need not
// change does not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fairlead/json/view.hpp"
#include "fairlead/mcp/context.hpp"
#include "fairlead/mcp/types.hpp"
#include "fairlead/protocol/revision.hpp"
#include "fairlead/rpc/message.hpp"

namespace fairlead::gateway {

// One value of the request to be replaced: where it stands, and what comes there.
struct Rename {
  json::View where;
  std::string to;
};

// The request as the server gets it.
class PassedRequest {
 public:
  PassedRequest(rpc::Message request, std::optional<Rename> rename)
      : request_(std::move(request)), rename_(std::move(rename)) {}

  // What clients of another era would say, from what is known of this one.
  struct Asker {
    mcp::Revision revision;
    json::View capabilities;
    json::View info;
    std::optional<mcp::LoggingLevel> log_level;
  };
  // `answers` and `state` are those of an earlier round, when a legacy client is asked for a modern server.
  rpc::Message for_server(mcp::Revision server, const Asker& asker, const json::Raw& answers = json::Raw(),
                          const json::Raw& state = json::Raw()) const;

 private:
  rpc::Message request_;
  std::optional<Rename> rename_;
};

// The result as the client gets it.
json::Raw result_for_client(const json::Raw& result, std::string_view method, mcp::Revision server,
                            mcp::Revision client, const mcp::Implementation& gateway);

}  // namespace fairlead::gateway
