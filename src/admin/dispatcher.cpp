#include "admin/dispatcher.hpp"

#include <algorithm>

#include "admin/conditional.hpp"
#include "admin/problem.hpp"
#include "admin/request_body.hpp"
#include "base/random_bytes.hpp"
#include "fairlead/base/base64.hpp"
#include "registry/rules.hpp"
#include "sql/database.hpp"

namespace fairlead::admin {

namespace {

std::string new_request_id() {
  const Result<std::string> bytes = random_bytes(9);
  return bytes ? base64url_encode(*bytes) : std::string("unknown");
}

std::string list_of_methods(const std::vector<std::string_view>& methods) {
  std::string list;
  for (const std::string_view method : methods) list.append(list.empty() ? "" : ", ").append(method);
  return list;
}

// Decides whether the client may use the route at all; handlers decide about rows.
Result<void> check_access(const Principal& principal, const Route& route) {
  if (!route.area) return {};
  if (!registry::is_administrator(principal) && !registry::is_registry_user(principal))
    return problem(codes::kUnauthenticated, "the admin API requires an API token");
  const registry::Decision decision = registry::decide(principal, route.access, *route.area);
  if (decision.allowed) return {};
  return problem(codes::kForbidden, decision.reason);
}

Result<void> check_query(const Query& query, const Route& route) {
  for (const auto& given : query.all()) {
    const bool known = std::ranges::any_of(
        route.query, [&](const Parameter& parameter) { return parameter.name == given.first; });
    if (!known) return parameter_error(given.first, "is unknown");
  }
  return {};
}

// Returns whether the change of a request may have been committed although its reply is an error. The key of
// such a request stays in use, because a repetition could make the change twice.
bool is_outcome_unknown(const Result<Reply>& reply) {
  return !reply && reply.error().detail().failure_code == sql::kCommitOutcomeUnknown;
}

}  // namespace

std::stop_token Call::disconnected() {
  if (!stop_) {
    stop_.emplace();
    exchange_->when_disconnected([stop = *stop_]() mutable { stop.request_stop(); });
  }
  return stop_->get_token();
}

// Counts a request of a client while it is in progress.
class Dispatcher::Permit {
 public:
  Permit(std::shared_ptr<Dispatcher> owner, std::string client)
      : owner_(std::move(owner)), client_(std::move(client)) {
    acquired_ = owner_->requests_by_client_[client_] < owner_->services_->options.max_client_requests;
    if (acquired_) ++owner_->requests_by_client_[client_];
  }
  ~Permit() {
    if (acquired_ && --owner_->requests_by_client_[client_] == 0) owner_->requests_by_client_.erase(client_);
  }
  Permit(const Permit&) = delete;
  bool acquired() const noexcept { return acquired_; }

 private:
  std::shared_ptr<Dispatcher> owner_;
  std::string client_;
  bool acquired_ = false;
};

Dispatcher::Dispatcher(std::shared_ptr<Services> services)
    : services_(std::move(services)), idempotency_(std::make_shared<Idempotency>(services_->registry)) {}

http::Handler Dispatcher::handler() {
  return [self = shared_from_this()](std::shared_ptr<http::Exchange> exchange) {
    self->dispatch(std::move(exchange));
  };
}

void Dispatcher::dispatch(std::shared_ptr<http::Exchange> exchange) {
  const http::Request& request = exchange->request();
  const std::string id = new_request_id();
  RouteTable::Match match = services_->routes.find(request.method, request.path());
  if (match.allowed.empty() || match.malformed)
    return send_problem(*exchange, problem(codes::kNotFound, "the admin API has no such path"), id);
  const std::string allowed = list_of_methods(match.allowed);
  if (request.method == "OPTIONS") {
    Reply reply(204);
    reply.headers.add("Allow", allowed);
    return send(*exchange, std::move(reply), id);
  }
  if (!match.route) {
    http::Response response = problem_response(
        problem(codes::kMethodNotAllowed, "the path does not support the method " + request.method),
        request.path(), id);
    response.headers.add("Allow", allowed);
    return exchange->respond(std::move(response));
  }
  std::string value = match.values.empty() ? std::string() : std::move(match.values.front());
  services_->loop.spawn(serve(shared_from_this(), std::move(exchange), *match.route, std::move(value), id));
}

Task<void> Dispatcher::serve(std::shared_ptr<Dispatcher> self, std::shared_ptr<http::Exchange> exchange,
                             const Route& route, std::string path_value, std::string request_id) {
  const Permit permit(self, client_key(*exchange->request().principal));
  if (!permit.acquired()) {
    const std::string limit = std::to_string(self->services_->options.max_client_requests);
    co_return self->send_problem(
        *exchange,
        problem(codes::kTooManyRequests, "max_client_requests (" + limit + ") requests are in progress"),
        request_id);
  }
  Call call(*self->services_, exchange, route, request_id);
  call.set_path_value(std::move(path_value));
  Result<Reply> reply = co_await reply_to(self, call);
  if (!reply) co_return self->send_problem(*exchange, reply.error(), request_id);
  if (!reply->sent) self->send(*exchange, std::move(*reply), request_id);
}

Task<Result<Reply>> Dispatcher::reply_to(std::shared_ptr<Dispatcher> self, Call& call) {
  const Result<void> prepared = self->prepare(call);
  if (!prepared) co_return prepared.error();
  if (call.route().method == "POST") {
    Result<Reply> reply = co_await reply_once(self, call);
    co_return reply;
  }
  Result<Reply> reply = co_await call.route().handler(call);
  co_return reply;
}

Task<Result<Reply>> Dispatcher::reply_once(std::shared_ptr<Dispatcher> self, Call& call) {
  Result<Idempotency::Outcome> outcome = co_await Idempotency::begin(self->idempotency_, call);
  if (!outcome) co_return outcome.error();
  if (outcome->stored) co_return std::move(*outcome->stored);
  Result<Reply> reply = co_await call.route().handler(call);
  if (!outcome->use || is_outcome_unknown(reply)) co_return reply;
  const bool is_stored = reply && !reply->sent;
  Task<Result<void>> recording =
      is_stored ? Idempotency::store(call, *outcome->use, *reply) : Idempotency::forget(*outcome->use);
  const Result<void> recorded = co_await std::move(recording);
  if (!recorded)
    self->services_->options.log.warning("response to a request with an Idempotency-Key was not stored",
                                         {{"reason", recorded.error().message()}});
  co_return reply;
}

Result<void> Dispatcher::prepare(Call& call) const {
  const http::Request& request = call.exchange()->request();
  const Result<void> access = check_access(call.principal(), call.route());
  if (!access) return access.error();
  Result<Query> query = Query::parse(request.query());
  if (!query) return query.error();
  const Result<void> known = check_query(*query, call.route());
  if (!known) return known.error();
  call.set_query(std::move(*query));
  Result<json::Raw> body = read_body(request, call.route().body, services_->options.max_admin_body_bytes);
  if (!body) return body.error();
  call.set_body(std::move(*body));
  return {};
}

void Dispatcher::send(http::Exchange& exchange, Reply reply, std::string_view request_id) const {
  const http::Request& request = exchange.request();
  const bool is_read = request.method == "GET" || request.method == "HEAD";
  if (reply.status == 200 && is_read && is_not_modified(request.headers, reply.headers.get("ETag"))) {
    reply.status = 304;
    reply.body = json::Raw();
  }
  http::Response response(reply.status);
  response.headers = std::move(reply.headers);
  response.headers.add("Request-Id", request_id);
  if (!response.headers.has("Cache-Control"))
    response.headers.add("Cache-Control", is_read ? "private, no-cache" : "no-store");
  if (!reply.body.absent()) {
    response.headers.add("Content-Type", "application/json");
    response.body.push_back(reply.body.bytes());
  }
  exchange.respond(std::move(response));
}

void Dispatcher::send_problem(http::Exchange& exchange, const Error& error,
                              const std::string& request_id) const {
  const int status = status_of(error);
  if (status >= 500)
    services_->options.log.warning(
        "admin request failed",
        {{"request", request_id}, {"path", exchange.request().path()}, {"reason", error.to_string()}});
  const bool complete = registry::is_administrator(*exchange.request().principal);
  exchange.respond(problem_response(complete ? error : without_database_details(error),
                                    exchange.request().path(), request_id));
}

}  // namespace fairlead::admin
