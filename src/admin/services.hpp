// Services: the objects that the handlers of the admin API share. Private to the layer.
#pragma once

#include <memory>
#include <string>

#include "admin/admin.hpp"
#include "admin/route.hpp"
#include "registry/registry.hpp"

namespace fairlead::admin {

class EventHub;
class ServerTester;

struct Services {
  Services(Loop& serving_loop, std::shared_ptr<registry::Registry> rows, gateway::Gateway& served_gateway,
           AdminOptions given, RouteTable table)
      : loop(serving_loop),
        registry(std::move(rows)),
        gateway(served_gateway),
        options(std::move(given)),
        routes(std::move(table)) {}
  Services(const Services&) = delete;

  const registry::State& state() const noexcept { return registry->state(); }
  // Returns the spec with which the gateway runs the server.
  pool::ServerSpec spec_of(const registry::Server& server) const {
    return options.spec_of ? options.spec_of(server) : server.spec;
  }

  Loop& loop;
  std::shared_ptr<registry::Registry> registry;
  gateway::Gateway& gateway;
  AdminOptions options;
  RouteTable routes;
  json::Raw openapi;  // the document
  std::shared_ptr<EventHub> events;
  std::shared_ptr<ServerTester> tester;
};

}  // namespace fairlead::admin
