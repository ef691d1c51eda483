#include "gateway/gateway_routes.hpp"

#include <utility>

#include "fairlead/json/writer.hpp"
#include "gateway/front.hpp"
#include "http/response_head.hpp"

namespace fairlead::gateway {

namespace {

constexpr std::string_view kMcpPath = "/mcp";
constexpr std::string_view kSsePath = "/sse";
constexpr std::string_view kMessagesPath = "/messages";

// The part of an HTTP+SSE pair that a path names.
enum class PairRole : std::uint8_t { none, sse, messages };

// Removes "/sse" or "/messages" from the end of `path`, unless nothing but that follows /mcp: then it is the
// name of a server, because the pair of /mcp is at /sse and /messages. After /e/ an endpoint's name must
// remain.
PairRole split_pair_path(std::string_view& path) {
  const std::size_t name_at = path.starts_with("/e/") ? 3 : 1;
  for (const auto& [suffix, role] :
       {std::pair(kSsePath, PairRole::sse), std::pair(kMessagesPath, PairRole::messages)}) {
    if (!path.ends_with(suffix) || path.size() <= name_at + suffix.size()) continue;
    path.remove_suffix(suffix.size());
    return role;
  }
  return PairRole::none;
}

http::Response unknown_endpoint_response(const Error& error) {
  json::Writer body;
  body.begin_object().key("error").begin_object().key("code").string(error.detail().failure_code);
  body.key("message").string(error.message()).key("remedy").string(error.detail().remedy);
  body.end_object().end_object();
  return http::Response::json(404, body.finish().bytes());
}

registry::Time to_system_time(Clock::time_point time) {
  const auto age = Clock::now() - time;
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now() - age);
}

}  // namespace

std::shared_ptr<GatewayRoutes> GatewayRoutes::create(Loop& loop, std::shared_ptr<Gateway> gateway,
                                                     transport::EndpointOptions endpoint,
                                                     GatewayServerOptions options) {
  return std::shared_ptr<GatewayRoutes>(
      new GatewayRoutes(loop, std::move(gateway), std::move(endpoint), std::move(options)));
}

GatewayRoutes::GatewayRoutes(Loop& loop, std::shared_ptr<Gateway> gateway,
                             transport::EndpointOptions endpoint, GatewayServerOptions options)
    : loop_(loop), gateway_(std::move(gateway)), options_(std::move(options)) {
  endpoint_ =
      transport::Endpoint::create(loop_, gateway_->endpoints().default_application(), std::move(endpoint));
}

void GatewayRoutes::add_to(http::Server& server) {
  const auto route = [&](std::string path, void (GatewayRoutes::*handle)(std::shared_ptr<http::Exchange>)) {
    server.route(std::move(path),
                 [weak = weak_from_this(), handle](std::shared_ptr<http::Exchange> exchange) {
                   if (const auto self = weak.lock()) (*self.*handle)(std::move(exchange));
                 });
  };
  route("/mcp", &GatewayRoutes::serve_mcp);
  route("/mcp/*", &GatewayRoutes::serve_mcp);
  route("/sse", &GatewayRoutes::serve_default_pair);
  route("/messages", &GatewayRoutes::serve_default_pair);
  route("/health", &GatewayRoutes::serve_health);
  route("/healthz", &GatewayRoutes::serve_health);
  route("/readyz", &GatewayRoutes::serve_health);
  server.route("/*", [](const std::shared_ptr<http::Exchange>& exchange) {
    exchange->respond(http::refusal_response(404, "Not Found: MCP is at /mcp, the status at /health"));
  });
  gateway_->endpoints().on_access_reduced([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->schedule_access_check();
  });
}

void GatewayRoutes::serve_mcp(std::shared_ptr<http::Exchange> exchange) {
  std::string_view path = exchange->request().path().substr(kMcpPath.size());
  const PairRole role = split_pair_path(path);
  Result<std::shared_ptr<transport::Application>> application =
      gateway_->endpoints().find(path, *exchange->request().principal);
  if (!application) return exchange->respond(unknown_endpoint_response(application.error()));
  if (role == PairRole::none) return endpoint_->serve(std::move(exchange), *application);
  if (role == PairRole::messages) return endpoint_->serve_messages(std::move(exchange), *application);
  const std::string messages = std::string(kMcpPath) + std::string(path) + std::string(kMessagesPath);
  endpoint_->serve_sse(std::move(exchange), *application, messages);
}

void GatewayRoutes::serve_default_pair(std::shared_ptr<http::Exchange> exchange) {
  const http::Request& request = exchange->request();
  Result<std::shared_ptr<transport::Application>> application =
      gateway_->endpoints().find(std::string_view(), *request.principal);
  if (!application) return exchange->respond(unknown_endpoint_response(application.error()));
  if (request.path() == kMessagesPath) return endpoint_->serve_messages(std::move(exchange), *application);
  endpoint_->serve_sse(std::move(exchange), *application, std::string(kMessagesPath));
}

void GatewayRoutes::serve_health(std::shared_ptr<http::Exchange> exchange) {
  const std::string_view path = exchange->request().path();
  const std::string& method = exchange->request().method;
  if (method != "GET" && method != "HEAD") {
    http::Response response = http::refusal_response(405, "Method Not Allowed: use GET");
    response.headers.set("Allow", "GET, HEAD");
    return exchange->respond(std::move(response));
  }
  if (path == "/health") return loop_.spawn(respond_with_health(gateway_, std::move(exchange)));
  std::optional<std::string> problem;
  if (path == "/readyz" && stopping_) problem = "the gateway is shutting down";
  if (path == "/readyz" && !problem && options_.readiness_problem) problem = options_.readiness_problem();
  json::Writer body;
  body.begin_object().key("status").string(problem ? "unavailable" : "ok");
  if (problem) body.key("reason").string(*problem);
  body.end_object();
  exchange->respond(http::Response::json(problem ? 503 : 200, body.finish().bytes()));
}

// Responds to a request for /health (docs/gateway.md, "Health").
Task<void> GatewayRoutes::respond_with_health(std::shared_ptr<Gateway> gateway,
                                              std::shared_ptr<http::Exchange> exchange) {
  std::stop_source disconnected;
  exchange->when_disconnected([disconnected]() mutable { disconnected.request_stop(); });
  const Result<HealthPtr> result =
      co_await gateway->health_for(*exchange->request().principal, disconnected.get_token());
  if (!result) {
    exchange->respond(http::refusal_response(503, result.error().to_string()));
    co_return;
  }
  const Health& health = **result;
  const bool is_serving = health.status == HealthStatus::ok || health.status == HealthStatus::degraded;
  http::Response response = http::Response::json(is_serving ? 200 : 503, Bytes());
  response.body = health.report;
  exchange->respond(std::move(response));
}

// ---- sessions --------------------------------------------------------------------------------------------

std::vector<SessionInfo> GatewayRoutes::sessions() const {
  std::vector<SessionInfo> infos;
  for (transport::SessionSummary& summary : endpoint_->sessions()) {
    SessionInfo& info = infos.emplace_back();
    const auto* const front = dynamic_cast<const Front*>(summary.application.get());
    info.endpoint = std::string(kMcpPath) + (front ? front->path() : std::string());
    info.id = std::move(summary.id);
    info.transport = std::move(summary.transport);
    info.revision = std::move(summary.revision);
    info.client = std::move(summary.client);
    info.principal = std::move(summary.principal);
    info.since = to_system_time(summary.since);
    info.last_request = to_system_time(summary.last_request);
  }
  return infos;
}

// Many endpoints and servers can change in one turn.
void GatewayRoutes::schedule_access_check() {
  if (std::exchange(access_check_scheduled_, true)) return;
  loop_.post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->access_check_scheduled_ = false;
    self->endpoint_->end_sessions([&](const transport::Application& application, const Principal& principal) {
      return !self->gateway_->endpoints().allows(application, principal);
    });
  });
}

}  // namespace fairlead::gateway
