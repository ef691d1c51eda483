#include "admin/admin.hpp"

#include <algorithm>

#include "admin/dispatcher.hpp"
#include "admin/event_hub.hpp"
#include "admin/openapi.hpp"
#include "admin/problem.hpp"
#include "admin/published_routes.hpp"
#include "admin/registry_events.hpp"
#include "admin/revocation.hpp"
#include "admin/routes.hpp"
#include "admin/server_tester.hpp"
#include "admin/services.hpp"

namespace fairlead::admin {

namespace {

class AdminImpl final : public Admin, public std::enable_shared_from_this<AdminImpl> {
 public:
  explicit AdminImpl(std::shared_ptr<Services> services) : services_(std::move(services)) {}

  void start();
  void add_routes(http::Server& server) override;
  void close() override;

 private:
  std::shared_ptr<Services> services_;
  std::shared_ptr<RevocationWatch> revocations_;
  std::vector<std::shared_ptr<void>> subscriptions_;
};

void AdminImpl::start() {
  services_->openapi = openapi_document(services_->routes, services_->options.version);
  services_->events = std::make_shared<EventHub>(
      EventHub::Limits{services_->options.max_event_streams, services_->options.max_client_event_streams});
  services_->tester = std::make_shared<ServerTester>(services_->loop, services_->options.test_pool,
                                                     services_->options.max_server_tests,
                                                     services_->options.server_test_timeout);
  subscriptions_ = publish_changes(services_->registry, services_->events);
  subscriptions_.push_back(
      publish_transitions(services_->registry, *services_->gateway.pool().monitor(), services_->events));
  revocations_ = RevocationWatch::start(services_->loop, services_->registry,
                                        [services = services_](const PrincipalSelector& selected) {
                                          services->events->end_streams(selected);
                                          if (services->options.end_sessions)
                                            services->options.end_sessions(selected);
                                        });
}

void AdminImpl::add_routes(http::Server& server) {
  const http::Handler handler = std::make_shared<Dispatcher>(services_)->handler();
  for (const std::string& root : services_->routes.roots()) {
    server.route(root, handler);
    server.route(root + "/*", handler);
  }
  server.route(std::string(kApiPrefix), handler);
  server.route(std::string(kApiPrefix) + "/*", handler);
  PublishedRoutes::add(std::make_shared<PublishedRoutes>(services_->registry), server);
}

// The code for the status of a rejection; empty if the admin API has none.
std::string_view rejection_code(int status) {
  switch (status) {
    case 400: return codes::kInvalidHeader;
    case 413: return codes::kBodyTooLarge;
    case 415: return codes::kUnsupportedMediaType;
    case 429: return codes::kTooManyRequests;
    default: return {};
  }
}

void AdminImpl::close() {
  services_->events->close();
  services_->tester->close();
}

}  // namespace

std::optional<http::Response> Admin::rejection_response(std::string_view target, int status,
                                                        std::string_view message) {
  static const std::vector<std::string> roots = admin_routes().roots();
  const std::string_view path = target.substr(0, target.find('?'));
  const auto is_below = [&](std::string_view root) {
    return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
  };
  if (is_published_path(path)) return published_error(status, message);
  const std::string_view code = rejection_code(status);
  if (code.empty() || (!is_below(kApiPrefix) && !std::ranges::any_of(roots, is_below))) return std::nullopt;
  return problem_response(problem(code, std::string(message)), path, "rejected");
}

std::shared_ptr<Admin> Admin::create(Loop& loop, std::shared_ptr<registry::Registry> registry,
                                     gateway::Gateway& gateway, AdminOptions options) {
  auto services =
      std::make_shared<Services>(loop, std::move(registry), gateway, std::move(options), admin_routes());
  auto admin = std::make_shared<AdminImpl>(std::move(services));
  admin->start();
  return admin;
}

}  // namespace fairlead::admin
