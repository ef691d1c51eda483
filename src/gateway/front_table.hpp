// FrontTable: the fronts of the gateway's endpoints. A front is what the clients of one endpoint connect to:
// an mcp::Server with its GatewayBackend. The front of the default endpoint always exists; the others are
// created when they are first used. Private to the layer.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/gateway/gateway.hpp"
#include "fairlead/mcp/serve.hpp"
#include "gateway/backend.hpp"

namespace fairlead::gateway {

class Front;

class FrontTable final : public Endpoints {
 public:
  // Fronts that no client uses are kept for the next one, up to this number (max_idle_fronts).
  static constexpr std::size_t kMaxIdleFronts = 64;

  // `default_front` is the server of the default endpoint.
  FrontTable(Loop& loop, GatewayBackend::Components components, const mcp::Server& default_front,
             mcp::HttpApplicationOptions options);
  ~FrontTable() override;

  const GatewayBackend::Components& components() const noexcept { return components_; }
  const mcp::Server& default_server() const noexcept;

  Result<void> put(registry::Endpoint endpoint) override;
  void remove(std::string_view name) override;
  Result<std::shared_ptr<transport::Application>> find(std::string_view path,
                                                       const Principal& principal) override;
  std::shared_ptr<transport::Application> default_application() const override;
  bool allows(const transport::Application& application, const Principal& principal) const override;
  void on_access_reduced(std::function<void()> callback) override { access_reduced_ = std::move(callback); }
  // Returns a function that says whether the scopes of the client's token name a server, or an endpoint that
  // selects the server and that the client may use. Returns null if the scopes restrict no such thing: if
  // there are none, or if they allow every endpoint or the states of all servers.
  std::function<bool(const ServerEntry&)> scope_filter(const Principal& client) const;

  // Sets the function that makes the tools of endpoints in the mode `discover`.
  void set_tools_factory(EndpointToolsFactory factory);
  // Called when a server was removed, or when fewer clients may see it.
  void notify_access_reduced() const;

 private:
  using FrontPtr = std::shared_ptr<Front>;
  using EndpointPtr = std::shared_ptr<const registry::Endpoint>;

  // Returns whether there is an endpoint at `path` that the principal may use.
  bool may_use(std::string_view path, const Principal& principal) const;
  // Returns the endpoint; for the default endpoint, if it has no row and was not removed, one that selects
  // every server. Returns null if there is none.
  EndpointPtr find_endpoint(std::string_view name) const;
  // Returns the front at `path`, and creates it if there is none. REQUIRES: there is an endpoint.
  FrontPtr front_at(std::string_view path);
  FrontPtr create_front(const std::string& path);
  FrontPtr find_front(std::string_view path) const;
  // Sets what the front offers to what `endpoint` selects; null: nothing.
  void apply(Front& front, const EndpointPtr& endpoint) const;
  void keep_idle(const FrontPtr& front);

  Loop& loop_;
  GatewayBackend::Components components_;
  mcp::HttpApplicationOptions application_options_;
  FrontPtr default_front_;
  bool default_removed_ = false;
  std::map<std::string, EndpointPtr, std::less<>> endpoints_;        // by name
  std::map<std::string, std::weak_ptr<Front>, std::less<>> fronts_;  // by path, without the default front
  std::list<FrontPtr> idle_fronts_;  // last used first; fronts that are in use may be among them
  std::uint64_t last_front_number_ = 0;
  EndpointToolsFactory make_tools_;
  std::function<void()> access_reduced_;
};

}  // namespace fairlead::gateway
