// FrontTable: the MCP servers of the gateway's endpoints. Private to the layer.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "fairlead/gateway/gateway.hpp"

namespace fairlead::gateway {

class FrontTable final : public Endpoints {
 public:
  explicit FrontTable(const mcp::Server& front);

  Result<void> put(registry::Endpoint endpoint) override;
  void remove(std::string_view name) override;
  Result<std::shared_ptr<transport::Application>> find(std::string_view path,
                                                       const Principal& principal) override;
  bool allows(const transport::Application& application, const Principal& principal) const override;
  void on_access_reduced(std::function<void()> callback) override;

 private:
  std::shared_ptr<transport::Application> default_application_;
};

}  // namespace fairlead::gateway
