// Front: what the clients of one endpoint connect to. The HTTP endpoint keeps it alive as long as it has
// sessions. Private to the layer.
#pragma once

#include <memory>
#include <string>

#include "fairlead/mcp/serve.hpp"
#include "gateway/backend.hpp"

namespace fairlead::gateway {

class Front final : public transport::Application {
 public:
  // `path` is that of Endpoints::find(). Makes `server` serve its clients through a new backend.
  Front(Loop& loop, std::string path, mcp::Server server, std::shared_ptr<EndpointScope> scope,
        const GatewayBackend::Components& components, const mcp::HttpApplicationOptions& options)
      : path_(std::move(path)),
        server_(std::move(server)),
        scope_(std::move(scope)),
        backend_(std::make_shared<GatewayBackend>(loop, server_, components, scope_)) {
    server_.backend(weak_backend(backend_, components.client_sessions));
    application_ = mcp::http_application(server_, options);
  }

  const std::string& path() const noexcept { return path_; }
  mcp::Server& server() noexcept { return server_; }
  const std::shared_ptr<EndpointScope>& scope() const noexcept { return scope_; }
  GatewayBackend& backend() const noexcept { return *backend_; }

  // transport::Application
  void serve(std::shared_ptr<Connection> connection, PrincipalPtr principal) override {
    application_->serve(std::move(connection), std::move(principal));
  }
  Task<Answer> serve(std::shared_ptr<transport::StatelessRequest> request) override {
    return application_->serve(std::move(request));
  }
  bool serve_directly(const std::shared_ptr<transport::StatelessRequest>& request,
                      const std::shared_ptr<Responder>& responder) override {
    return application_->serve_directly(request, responder);
  }
  mcp::HeaderParams header_params(std::string_view tool, const Principal& principal) const override {
    return application_->header_params(tool, principal);
  }
  void on_drain() override { application_->on_drain(); }
  void end_subscriptions(const std::function<bool(const Principal&)>& selected) override {
    application_->end_subscriptions(selected);
  }
  Task<void> drain(std::chrono::milliseconds grace) override { return application_->drain(grace); }

 private:
  std::string path_;
  mcp::Server server_;
  std::shared_ptr<EndpointScope> scope_;
  std::shared_ptr<GatewayBackend> backend_;
  std::shared_ptr<transport::Application> application_;
};

}  // namespace fairlead::gateway
