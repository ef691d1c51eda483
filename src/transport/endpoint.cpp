#include "fairlead/transport/endpoint.hpp"

#include <sys/random.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/comma_list.hpp"
#include "fairlead/base/base64.hpp"
#include "fairlead/base/string_map.hpp"
#include "fairlead/loop/timer.hpp"
#include "fairlead/protocol/call_facts.hpp"
#include "loop/slices.hpp"
#include "peer/parse_in_steps.hpp"
#include "protocol/header_values.hpp"
#include "transport/legacy_session.hpp"
#include "transport/modern_request.hpp"
#include "transport/pair_session.hpp"
#include "transport/websocket_connection.hpp"

namespace fairlead::transport {

namespace {

// 192 bits, in characters that are fit for headers and queries.
std::string make_session_id() {
  char bytes[24];
  while (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) continue;
  return base64url_encode(std::string_view(bytes, sizeof bytes));
}

Refusal no_session() {
  return Refusal{404, kNoSession, "Session not found"};
}

http::Response not_allowed(std::string_view allow) {
  http::Response response = refuse(Refusal{405, kRefused, "Method Not Allowed"});
  response.headers.add("Allow", allow);
  return response;
}

bool lists_token(std::string_view list, std::string_view token) {
  return any_list_element(list, [&](std::string_view one) { return http::same_name(one, token); });
}

bool wants_websocket(const http::Request& request) {
  return request.method == "GET" && lists_token(request.headers.get("Upgrade"), "websocket");
}

// The value of `name` in a query; nothing of what we look for needs decoding.
std::string_view query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), one.size() + 1));
    if (one.starts_with(name) && one.substr(name.size()).starts_with("=")) return one.substr(name.size() + 1);
  }
  return {};
}

class EndpointImpl final : public Endpoint, public std::enable_shared_from_this<EndpointImpl> {
 public:
  EndpointImpl(Loop& loop, std::shared_ptr<Application> application, EndpointOptions options)
      : loop_(loop),
        application_(std::move(application)),
        options_(std::make_shared<const EndpointOptions>(std::move(options))),
        total_(std::make_shared<EventStore::Total>(EventStore::Total{options_->max_event_bytes, 0})),
        ticker_(loop, period_of(*options_)) {}

  // What hangs on a route may outlive us; we outlive what we have begun.
  http::Handler handler() override {
    return [self = shared_from_this()](std::shared_ptr<http::Exchange> exchange) {
      self->take(std::move(exchange));
    };
  }
  http::Handler sse_handler(std::string messages_path) override {
    return [self = shared_from_this(), path = std::move(messages_path)](
               std::shared_ptr<http::Exchange> exchange) { self->take_pair_get(std::move(exchange), path); };
  }
  http::Handler messages_handler() override {
    return [self = shared_from_this()](std::shared_ptr<http::Exchange> exchange) {
      self->take_pair_post(std::move(exchange));
    };
  }

  std::size_t sessions() const noexcept override {
    return sessions_.size() + pairs_.size() + sockets_.size();
  }

  Task<void> wind_down() override {
    winding_down_ = true;
    application_->ending();
    return in_slices(loop_, all(sessions_), &LegacySession::end_standalone);
  }

  Task<void> finish(std::chrono::milliseconds grace) override {
    return finish_and_close(shared_from_this(), grace);
  }

  void close() override {
    winding_down_ = true;
    application_->ending();
    for (const auto& session : all(sessions_)) session->close();
    for (const auto& pair : all(pairs_)) pair->close();
    for (const auto& socket : open_sockets()) socket->close();
  }

 private:
  static Task<void> finish_and_close(std::shared_ptr<EndpointImpl> self, std::chrono::milliseconds grace) {
    if (!self->winding_down_) {
      Task<void> winding_down = self->wind_down();
      co_await winding_down;
    }
    Task<void> finishing = self->application_->finish(grace);
    co_await finishing;
    Task<void> closing_sessions = in_slices(self->loop_, all(self->sessions_), &Connection::close);
    co_await closing_sessions;
    Task<void> closing_pairs = in_slices(self->loop_, all(self->pairs_), &Connection::close);
    co_await closing_pairs;
    Task<void> closing_sockets = in_slices(self->loop_, self->open_sockets(), &Connection::close);
    co_await closing_sockets;
  }

  // Calls `act` of each session. Releases each after its call, so that the destructors run in slices too.
  template <class Session, class Base>
  static Task<void> in_slices(Loop& loop, std::vector<std::shared_ptr<Session>> sessions,
                              void (Base::*act)()) {
    Slices slices;
    while (!sessions.empty()) {
      (*sessions.back().*act)();
      sessions.pop_back();
      if (slices.due(0)) co_await sleep_for(loop, Slices::kPause);
    }
  }

  static std::chrono::milliseconds period_of(const EndpointOptions& options) {
    std::chrono::milliseconds period = std::min(options.keep_alive, options.session_idle);
    if (options.finished_stream_grace.count() > 0) period = std::min(period, options.finished_stream_grace);
    if (options.request_timeout.count() > 0) period = std::min(period, options.request_timeout);
    return period;
  }

  // Ending one takes it out of the table: walk a copy.
  template <class Table>
  static std::vector<typename Table::mapped_type> all(const Table& table) {
    std::vector<typename Table::mapped_type> copies;
    for (const auto& [id, one] : table) copies.push_back(one);
    return copies;
  }

  std::vector<std::shared_ptr<WebSocketConnection>> open_sockets() const {
    std::vector<std::shared_ptr<WebSocketConnection>> open;
    for (const auto& [it, weak] : sockets_) {
      if (auto socket = weak.lock()) open.push_back(std::move(socket));
    }
    return open;
  }

  void take(std::shared_ptr<http::Exchange> exchange) {
    const http::Request& request = exchange->request();
    if (request.method == "POST") return take_post(std::move(exchange));
    if (options_->websocket && wants_websocket(request)) return take_websocket(std::move(exchange));
    const bool known = request.method == "GET" || request.method == "DELETE";
    if (!known) return exchange->respond(not_allowed("GET, POST, DELETE"));
    // The modern era has neither.
    if (!has_legacy_version(request.headers)) return exchange->respond(not_allowed("POST"));
    const std::shared_ptr<LegacySession> session = find_session(*exchange, {});
    if (!session) return;
    if (request.method == "GET") return session->take_get(std::move(exchange), winding_down_);
    session->take_delete(exchange);
  }

  // ---- POST ----

  // Calls then(exchange, message) with the message in the body of a request, at once unless it is large.
  template <class Then>
  void read_message(std::shared_ptr<http::Exchange> exchange, Then then) {
    const http::Request& request = exchange->request();
    if (!has_json_body(request.headers)) {
      return exchange->respond(
          refuse(Refusal{415, kRefused, "Unsupported Media Type: Content-Type must be application/json"}));
    }
    if (is_large_frame(request.body)) {
      loop_.spawn(read_large<Then>(shared_from_this(), std::move(exchange), std::move(then)));
      return;
    }
    then(std::move(exchange), rpc::Message::parse(request.body, options_->limits));
  }

  template <class Then>
  static Task<void> read_large(std::shared_ptr<EndpointImpl> self, std::shared_ptr<http::Exchange> exchange,
                               Then then) {
    const Bytes body = exchange->request().body;
    Task<rpc::Message> parsing = parse_in_steps(self->loop_, body, self->options_->limits);
    rpc::Message message = co_await parsing;
    if (!exchange->gone()) then(std::move(exchange), std::move(message));
  }

  void take_post(std::shared_ptr<http::Exchange> exchange) {
    read_message(std::move(exchange),
                 [self = shared_from_this()](std::shared_ptr<http::Exchange> read, rpc::Message message) {
                   self->take_message(std::move(read), std::move(message));
                 });
  }

  void take_message(std::shared_ptr<http::Exchange> exchange, rpc::Message message) {
    if (message.is(rpc::Kind::request)) mcp::CallFacts::attach(message);
    const HeaderParamsOf params_of = [this,
                                      &principal = *exchange->request().principal](std::string_view tool) {
      return application_->header_params(tool, principal);
    };
    const Verdict verdict = judge(exchange->request().headers, message, params_of);
    if (verdict.refusal) return exchange->respond(refuse(*verdict.refusal, message.id()));
    if (verdict.era == Era::modern) return take_modern(std::move(exchange), std::move(message));
    take_legacy(std::move(exchange), message);
  }

  void take_modern(std::shared_ptr<http::Exchange> exchange, rpc::Message message) {
    // There is nothing a modern client could have to notify of over HTTP; it may all the same.
    if (message.is(rpc::Kind::notification)) return exchange->respond(http::Response(202));
    if (winding_down_ && message.method() == "subscriptions/listen")
      return exchange->respond(refuse(shutting_down(), message.id()));
    auto request = std::make_shared<ModernRequest>(std::move(exchange), std::move(message), *options_);
    ModernRequest::serve(request, application_, ticker_);
  }

  void take_legacy(std::shared_ptr<http::Exchange> exchange, const rpc::Message& message) {
    const bool begins = message.is(rpc::Kind::request) && message.method() == "initialize" &&
                        !exchange->request().headers.has(mcp::kSessionHeader);
    const std::shared_ptr<LegacySession> session =
        begins ? begin_session(*exchange, message) : find_session(*exchange, message.id());
    if (session) session->take_post(std::move(exchange), message);
  }

  // ---- sessions ----

  // A session of another principal does not exist for this one.
  template <class Session>
  static bool is_owner(const http::Exchange& exchange, const Session& session) {
    return same_identity(*exchange.request().principal, *session.principal());
  }

  std::shared_ptr<LegacySession> find_session(http::Exchange& exchange, std::string_view request_id) {
    const http::Headers& headers = exchange.request().headers;
    if (!headers.has(mcp::kSessionHeader)) {
      exchange.respond(refuse(Refusal{400, kRefused, "Bad Request: Mcp-Session-Id is missing"}, request_id));
      return nullptr;
    }
    const auto found = sessions_.find(headers.get(mcp::kSessionHeader));
    if (found != sessions_.end() && is_owner(exchange, *found->second)) return found->second;
    exchange.respond(refuse(no_session(), request_id));
    return nullptr;
  }

  bool has_room(http::Exchange& exchange, std::string_view request_id) {
    if (winding_down_) {
      exchange.respond(refuse(shutting_down(), request_id));
      return false;
    }
    if (sessions() < options_->max_sessions || evict_for(exchange.account().get())) return true;
    const std::string why = "max_sessions (" + std::to_string(options_->max_sessions) + ") are open";
    options_->log.warning("session refused", {{"reason", why}});
    exchange.respond(refuse(Refusal{503, kRefused, why}, request_id));
    return false;
  }

  // Ends a session to make room for one of `client`. Returns false when no session has to give way.
  bool evict_for(const ByteAccount* client) {
    const SessionCounts counts = count_sessions();
    const auto held = [&](const ByteAccount* by) { return counts.contains(by) ? counts.at(by) : 0; };
    const bool below_share = held(client) < options_->max_client_sessions;
    std::shared_ptr<LegacySession> victim;
    const auto better = [&](const LegacySession& one) {
      if (!victim || one.used() != victim->used()) return !victim || !one.used();
      const std::size_t ours = held(one.account().get());
      const std::size_t theirs = held(victim->account().get());
      return ours != theirs ? ours > theirs : one.last_used() < victim->last_used();
    };
    for (const auto& [id, session] : sessions_) {
      const bool over_share = held(session->account().get()) > options_->max_client_sessions;
      if (!session->idle() || (session->used() && !(below_share && over_share))) continue;
      if (better(*session)) victim = session;
    }
    if (!victim) return false;
    options_->log.debug("session evicted: max_sessions are open", {{"session", victim->description()}});
    victim->close();
    return true;
  }

  using SessionCounts = std::unordered_map<const ByteAccount*, std::size_t>;
  SessionCounts count_sessions() const {
    SessionCounts counts;
    for (const auto& [id, session] : sessions_) ++counts[session->account().get()];
    for (const auto& [id, pair] : pairs_) ++counts[pair->account().get()];
    for (const auto& [it, weak] : sockets_) {
      if (const auto socket = weak.lock()) ++counts[socket->account().get()];
    }
    return counts;
  }

  std::shared_ptr<LegacySession> begin_session(http::Exchange& exchange, const rpc::Message& message) {
    if (!has_room(exchange, message.id())) return nullptr;
    const PrincipalPtr principal = exchange.request().principal;
    auto session = std::make_shared<LegacySession>(loop_, make_session_id(), principal, options_, total_,
                                                   [weak = weak_from_this()](const std::string& id) {
                                                     if (const auto self = weak.lock())
                                                       self->sessions_.erase(id);
                                                   });
    session->charge_to(exchange.account());
    sessions_.emplace(session->id(), session);
    ticker_.add(*session);
    application_->serve(session, principal);
    return session;
  }

  // ---- HTTP+SSE ----

  void take_pair_get(std::shared_ptr<http::Exchange> exchange, const std::string& messages_path) {
    if (exchange->request().method != "GET") return exchange->respond(not_allowed("GET"));
    if (!has_room(*exchange, {})) return;
    const std::string id = make_session_id();
    const PrincipalPtr principal = exchange->request().principal;
    auto pair = std::make_shared<PairSession>(loop_, id, principal,
                                              [weak = weak_from_this()](const std::string& over) {
                                                if (const auto self = weak.lock()) self->pairs_.erase(over);
                                              });
    pairs_.emplace(id, pair);
    ticker_.add(*pair);
    pair->open(std::move(exchange), messages_path + "?sessionId=" + id);
    application_->serve(pair, principal);
  }

  void take_pair_post(std::shared_ptr<http::Exchange> exchange) {
    if (exchange->request().method != "POST") return exchange->respond(not_allowed("POST"));
    const auto found = pairs_.find(query_value(exchange->request().query(), "sessionId"));
    if (found == pairs_.end() || !is_owner(*exchange, *found->second))
      return exchange->respond(refuse(no_session()));
    read_message(std::move(exchange), [self = shared_from_this(), pair = found->second](
                                          std::shared_ptr<http::Exchange> read, const rpc::Message& message) {
      if (message.is(rpc::Kind::malformed)) {
        const Verdict verdict = judge({}, message, HeaderParamsOf());
        return read->respond(refuse(*verdict.refusal, message.id()));
      }
      pair->take_post(read, message);
    });
  }

  // ---- WebSocket ----

  void take_websocket(std::shared_ptr<http::Exchange> exchange) {
    const http::Headers& headers = exchange->request().headers;
    const std::string key(headers.get("Sec-WebSocket-Key"));
    const std::optional<std::string> raw = base64_decode(key);
    if (headers.get("Sec-WebSocket-Version") != "13") {
      http::Response response = refuse(Refusal{426, kRefused, "Upgrade Required: WebSocket version 13"});
      response.headers.add("Sec-WebSocket-Version", "13");
      return exchange->respond(std::move(response));
    }
    if (!lists_token(headers.get("Connection"), "upgrade") || !raw || raw->size() != 16)
      return exchange->respond(refuse(Refusal{400, kRefused, "Bad Request: not a WebSocket handshake"}));
    if (!has_room(*exchange, {})) return;
    http::Response head(101);
    head.headers.add("Upgrade", "websocket");
    head.headers.add("Connection", "Upgrade");
    head.headers.add("Sec-WebSocket-Accept", websocket::accept_of(key));
    if (lists_token(headers.get("Sec-WebSocket-Protocol"), "mcp"))
      head.headers.add("Sec-WebSocket-Protocol", "mcp");
    const PrincipalPtr principal = exchange->request().principal;
    const std::shared_ptr<ByteAccount> account = exchange->account();
    http::Exchange::Upgraded upgraded = exchange->upgrade(std::move(head));
    if (!upgraded.stream) return;
    auto socket =
        WebSocketConnection::create(loop_, std::move(upgraded.stream), std::move(upgraded.early),
                                    websocket::Role::server, options_->limits, options_->keep_alive);
    socket->charge_to(account);
    sockets_.emplace(socket.get(), socket);
    socket->when_ended([weak = weak_from_this(), it = socket.get()] {
      if (const auto self = weak.lock()) self->sockets_.erase(it);
    });
    application_->serve(socket, principal);
  }

  Loop& loop_;
  std::shared_ptr<Application> application_;
  std::shared_ptr<const EndpointOptions> options_;
  std::shared_ptr<EventStore::Total> total_;
  Ticker ticker_;
  bool winding_down_ = false;
  StringMap<std::shared_ptr<LegacySession>> sessions_;
  StringMap<std::shared_ptr<PairSession>> pairs_;
  std::unordered_map<WebSocketConnection*, std::weak_ptr<WebSocketConnection>> sockets_;
};

}  // namespace

Task<void> Application::finish(std::chrono::milliseconds) {
  co_return;
}

std::shared_ptr<Endpoint> Endpoint::create(Loop& loop, std::shared_ptr<Application> application,
                                           EndpointOptions options) {
  return std::make_shared<EndpointImpl>(loop, std::move(application), std::move(options));
}

}  // namespace fairlead::transport
