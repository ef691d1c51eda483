// GatewayRoutes: serves the HTTP routes of a gateway: its endpoints, and its health. Private to the layer.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fairlead/gateway/gateway_server.hpp"
#include "fairlead/transport/endpoint.hpp"

namespace fairlead::gateway {

class GatewayRoutes : public std::enable_shared_from_this<GatewayRoutes> {
 public:
  static std::shared_ptr<GatewayRoutes> create(Loop& loop, std::shared_ptr<Gateway> gateway,
                                               transport::EndpointOptions endpoint,
                                               GatewayServerOptions options);

  // Adds the routes, which hold weak references to this object. After a change that reduces the access to
  // endpoints, ends the sessions whose clients may no longer use their endpoint.
  void add_to(http::Server& server);
  // /readyz fails from now on.
  void set_stopping() noexcept { stopping_ = true; }
  transport::Endpoint& endpoint() const noexcept { return *endpoint_; }
  std::vector<SessionInfo> sessions() const;

 private:
  GatewayRoutes(Loop& loop, std::shared_ptr<Gateway> gateway, transport::EndpointOptions endpoint,
                GatewayServerOptions options);

  void serve_mcp(std::shared_ptr<http::Exchange> exchange);
  void serve_default_pair(std::shared_ptr<http::Exchange> exchange);
  void serve_health(std::shared_ptr<http::Exchange> exchange);
  static Task<void> respond_with_health(std::shared_ptr<Gateway> gateway,
                                        std::shared_ptr<http::Exchange> exchange);
  void schedule_access_check();

  Loop& loop_;
  std::shared_ptr<Gateway> gateway_;
  GatewayServerOptions options_;
  std::shared_ptr<transport::Endpoint> endpoint_;
  bool stopping_ = false;
  bool access_check_scheduled_ = false;
};

}  // namespace fairlead::gateway
