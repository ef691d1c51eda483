// Router: which server a request is for, and what has to be renamed in it, or why it is for none. Private to
// the layer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/mcp/context.hpp"
#include "fairlead/rpc/message.hpp"
#include "gateway/catalogue_store.hpp"
#include "gateway/passing.hpp"
#include "gateway/server_table.hpp"

namespace fairlead::gateway {

// Where a request goes.
struct Route {
  std::shared_ptr<ServerEntry> server;
  std::shared_ptr<const Catalogue> catalogue;  // what `entry` is part of
  std::optional<Rename> rename;                // of a tool or prompt: to the server's own name
  json::View entry;                            // the tool as it is offered; absent for anything else
};

class Router {
 public:
  Router(std::shared_ptr<const ServerTable> servers, std::shared_ptr<CatalogueStore> catalogue)
      : servers_(std::move(servers)), catalogue_(std::move(catalogue)) {}

  // Fails with the error to answer the client with.
  Result<Route> route(const rpc::Message& message, const mcp::Context& context) const;
  // The server of a resource; null: it belongs to none. Fails with the error to answer the client with.
  Result<std::shared_ptr<ServerEntry>> server_of_resource(std::string_view uri, std::string_view session,
                                                          std::string_view user) const;
  // Whether `message`, for which there is no route, may ask for something of a server that has not listed
  // yet.
  bool may_be_listed_yet(const rpc::Message& message) const;
  // The server whose name that of a tool or prompt begins with; null if there is none.
  std::shared_ptr<ServerEntry> server_named_in(const rpc::Message& message) const;

 private:
  Result<Route> route_resource(std::string_view uri, const mcp::Context& context) const;
  Error unknown_name(std::string_view what, const std::string& name) const;

  std::shared_ptr<const ServerTable> servers_;
  std::shared_ptr<CatalogueStore> catalogue_;
};

Error resource_not_found(std::string_view uri);

}  // namespace fairlead::gateway
