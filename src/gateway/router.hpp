// Router: which server a request is for, and what has to be renamed in it, or why it is for none. Private to
// the layer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/mcp/context.hpp"
#include "fairlead/protocol/call_facts.hpp"
#include "gateway/catalogue_store.hpp"
#include "gateway/failure.hpp"
#include "gateway/server_table.hpp"

namespace fairlead::gateway {

// The name or URI that a request is about.
struct Requested {
  Kind kind = Kind::tools;  // resources for templates too
  std::string name;
};
// Reads a request that is not for a list. Fails with the error to answer the client with.
Result<Requested> requested_in(const mcp::CallFacts& call);

// Where a request goes.
struct Route {
  std::shared_ptr<ServerEntry> server;
  std::shared_ptr<const Catalogue> catalogue;  // what `entry` is part of
  std::optional<std::string> target;           // of a tool or prompt: the server's own name
  json::View entry;                            // the tool as it is offered; absent for anything else
};

class Router {
 public:
  Router(std::shared_ptr<const ServerTable> servers, std::shared_ptr<CatalogueStore> catalogue,
         FailurePolicy failures)
      : servers_(std::move(servers)), catalogue_(std::move(catalogue)), failures_(failures) {}

  // Fails with the error to answer the client with, if no list that is to be waited for can change that.
  Result<Route> route(const Requested& requested, std::string_view session, const Principal& principal) const;
  // For a request without a route: the server that its tool's or prompt's name says it is for, if that may
  // have it without having listed it. Null if there is none.
  std::shared_ptr<ServerEntry> unlisted_owner(const Requested& requested) const;
  // For a request without a route: whether it is for a resource, and some server has not tried to list yet.
  bool may_be_listed_yet(const Requested& requested) const;

 private:
  Result<Route> route_resource(const Requested& requested, std::string_view session,
                               const Principal& principal) const;
  Error unknown_name(const Requested& requested) const;
  Error unknown_resource(std::string_view uri, const Principal& principal) const;

  std::shared_ptr<const ServerTable> servers_;
  std::shared_ptr<CatalogueStore> catalogue_;
  FailurePolicy failures_;
};

}  // namespace fairlead::gateway
