// Implementation of Gateway: makes the units of a gateway and applies changes of its servers to them. Private
// to the layer.
#pragma once

#include <memory>
#include <string>

#include "fairlead/gateway/gateway.hpp"
#include "gateway/backend.hpp"
#include "gateway/health_reports.hpp"
#include "gateway/upstream_events.hpp"

namespace fairlead::gateway {

class GatewayImpl final : public Gateway, public std::enable_shared_from_this<GatewayImpl> {
 public:
  GatewayImpl(Loop& loop, const Config& config, const Log& log)
      : GatewayImpl(loop, config, log, std::make_shared<SharedRedactor>()) {}
  Result<void> start(const Config& config);

  const mcp::Server& front() const noexcept override { return front_; }
  pool::Pool& pool() const noexcept override { return *pool_; }
  json::Raw health() const override;
  Task<Result<HealthPtr>> health_for(const Principal& reader, std::stop_token stop) const override;
  Result<void> add_tool(mcp::ToolSpec spec, mcp::Server::CoroutineTool handler) override;
  bool remove_tool(const std::string& name) override { return front_.remove_tool(name); }
  Result<void> add_server(pool::ServerSpec spec) override;
  Result<void> update_server(pool::ServerSpec spec) override;
  Result<void> remove_server(std::string_view name) override;
  Result<void> enable_server(std::string_view name) override;
  Result<void> disable_server(std::string_view name) override;
  Task<Result<void>> reload(Config config) override;
  Result<void> check_reload(const Config& config) const override;
  Task<void> shutdown(std::chrono::milliseconds grace) override;

 private:
  // `redactor` is that of the pool and of all logs.
  GatewayImpl(Loop& loop, const Config& config, const Log& log, std::shared_ptr<SharedRedactor> redactor);
  void set_clocks(const Config& config);
  static Task<Result<void>> apply_config(std::shared_ptr<GatewayImpl> self, Config next);

  Loop& loop_;
  Log log_;
  mcp::Server front_;
  std::shared_ptr<UpstreamEvents> events_;
  std::shared_ptr<pool::Pool> pool_;
  std::shared_ptr<ServerTable> servers_;
  std::shared_ptr<CatalogueStore> catalogue_;
  std::shared_ptr<Listing> listing_;
  std::shared_ptr<Watches> watches_;
  std::shared_ptr<GatewayBackend> backend_;
  std::shared_ptr<HealthReports> health_;
  struct Running {
    bool stopping = false;
    std::uint64_t reloads = 0;  // the last one supersedes those before it
  };
  Running running_;
};

}  // namespace fairlead::gateway
