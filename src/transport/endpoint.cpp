#include "fairlead/transport/endpoint.hpp"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "fairlead/base/base64.hpp"
#include "fairlead/base/block_cache.hpp"
#include "fairlead/base/id_map.hpp"
#include "fairlead/base/string_map.hpp"
#include "fairlead/loop/timer.hpp"
#include "fairlead/protocol/call_facts.hpp"
#include "loop/slices.hpp"
#include "peer/parse_in_steps.hpp"
#include "protocol/header_values.hpp"
#include "transport/application_list.hpp"
#include "transport/endpoint_requests.hpp"
#include "transport/http_sse_session.hpp"
#include "transport/legacy_session.hpp"
#include "transport/modern_request.hpp"
#include "transport/websocket_connection.hpp"

namespace fairlead::transport {

namespace {

class EndpointImpl final : public Endpoint, public std::enable_shared_from_this<EndpointImpl> {
 public:
  EndpointImpl(Loop& loop, std::shared_ptr<Application> application, EndpointOptions options)
      : loop_(loop),
        application_(std::move(application)),
        options_(std::make_shared<const EndpointOptions>(std::move(options))),
        event_budget_(std::make_shared<EventStore::SharedBudget>(
            EventStore::SharedBudget{options_->max_total_event_bytes, 0})),
        ticker_(loop, tick_period(*options_)) {
    if (application_) applications_.add(application_);
  }

  // Handlers and requests in progress share ownership of the endpoint, because a route may outlive all other
  // owners.
  http::Handler handler() override {
    return [self = shared_from_this()](std::shared_ptr<http::Exchange> exchange) {
      self->serve(std::move(exchange), self->application_);
    };
  }
  http::Handler sse_handler(std::string messages_path) override {
    return [self = shared_from_this(),
            path = std::move(messages_path)](std::shared_ptr<http::Exchange> exchange) {
      self->serve_sse(std::move(exchange), self->application_, path);
    };
  }
  http::Handler messages_handler() override {
    return [self = shared_from_this()](std::shared_ptr<http::Exchange> exchange) {
      self->serve_messages(std::move(exchange), self->application_);
    };
  }

  void serve(std::shared_ptr<http::Exchange> exchange,
             const std::shared_ptr<Application>& application) override {
    const http::Request& request = exchange->request();
    if (request.method == "POST") return handle_post(std::move(exchange), application);
    if (options_->websocket && requests_websocket(request))
      return handle_websocket(std::move(exchange), application);
    const bool allowed = request.method == "GET" || request.method == "DELETE";
    if (!allowed) return exchange->respond(method_not_allowed_response("GET, POST, DELETE"));
    // In the modern era clients send neither GET nor DELETE.
    if (!HeaderFacts::of(request).allows_legacy_era)
      return exchange->respond(method_not_allowed_response("POST"));
    const std::shared_ptr<LegacySession> session = find_session_or_reject(*exchange, *application, {});
    if (!session) return;
    if (request.method == "GET") return session->handle_get(std::move(exchange), draining_);
    session->handle_delete(exchange);
  }

  void end_sessions(const ClientSelector& selected) override {
    close_if([&](const SessionBinding& binding, const Principal& principal) {
      return binding.application && selected(*binding.application, principal);
    });
    for (const auto& application : applications_.alive())
      application->end_subscriptions(
          [&](const Principal& principal) { return selected(*application, principal); });
  }
  bool end_session(std::string_view id) override {
    return close_if([&](const SessionBinding& binding, const Principal&) {
             return std::to_string(binding.number) == id;
           }) > 0;
  }
  std::vector<SessionSummary> sessions() const override {
    std::vector<SessionSummary> summaries;
    for (const auto& [id, session] : sessions_) {
      SessionSummary& summary =
          summaries.emplace_back(summarize("http", session->binding(), session->principal()));
      summary.revision = to_string(session->revision());
      summary.last_request = session->last_used();
    }
    for (const auto& [id, session] : http_sse_sessions_)
      summaries.push_back(summarize("sse", session->binding(), session->principal()));
    for (const auto& [raw, entry] : websockets_)
      summaries.push_back(summarize("websocket", entry.binding, entry.principal));
    return summaries;
  }

  std::size_t session_count() const noexcept override {
    return sessions_.size() + http_sse_sessions_.size() + websockets_.size();
  }

  Task<void> begin_drain() override {
    draining_ = true;
    for (const auto& application : applications_.alive()) application->on_drain();
    return for_each_in_slices(loop_, copy_sessions(sessions_), &LegacySession::end_standalone_stream);
  }

  Task<void> drain(std::chrono::milliseconds grace) override {
    return drain_and_close(shared_from_this(), grace);
  }

  void close() override {
    draining_ = true;
    for (const auto& application : applications_.alive()) application->on_drain();
    for (const auto& session : copy_sessions(sessions_)) session->close();
    for (const auto& session : copy_sessions(http_sse_sessions_)) session->close();
    for (const auto& socket : live_websockets()) socket->close();
  }

 private:
  static SessionSummary summarize(const char* transport, const SessionBinding& binding,
                                  const PrincipalPtr& principal) {
    SessionSummary summary;
    summary.id = std::to_string(binding.number);
    summary.transport = transport;
    summary.application = binding.application;
    summary.principal = principal;
    summary.client = binding.client;
    summary.since = summary.last_request = binding.since;
    return summary;
  }

  // Closes the sessions and WebSockets for which `selected` returns true. Returns their number.
  std::size_t close_if(const std::function<bool(const SessionBinding&, const Principal&)>& selected) {
    std::vector<std::shared_ptr<Connection>> closing;
    const auto collect = [&](const auto& table) {
      for (const auto& [id, session] : table) {
        if (selected(session->binding(), *session->principal())) closing.push_back(session);
      }
    };
    collect(sessions_);
    collect(http_sse_sessions_);
    for (const auto& [raw, entry] : websockets_) {
      auto socket = entry.socket.lock();
      if (socket && selected(entry.binding, *entry.principal)) closing.push_back(std::move(socket));
    }
    for (const auto& session : closing) session->close();
    return closing.size();
  }

  SessionBinding make_binding(const std::shared_ptr<Application>& application, std::string client = {}) {
    note_application(application);
    return SessionBinding{application, ++last_session_number_, std::move(client), Clock::now()};
  }

  static Task<void> drain_and_close(std::shared_ptr<EndpointImpl> self, std::chrono::milliseconds grace) {
    if (!self->draining_) co_await self->begin_drain();
    co_await self->applications_.drain(self->loop_, grace);
    co_await for_each_in_slices(self->loop_, copy_sessions(self->sessions_), &Connection::close);
    co_await for_each_in_slices(self->loop_, copy_sessions(self->http_sse_sessions_), &Connection::close);
    co_await for_each_in_slices(self->loop_, self->live_websockets(), &Connection::close);
  }

  // Calls the member function `act` on each session, in slices. Releases the reference to each session after
  // its call, so that the destructors run in slices too.
  template <class Session, class Base>
  static Task<void> for_each_in_slices(Loop& loop, std::vector<std::shared_ptr<Session>> sessions,
                                       void (Base::*act)()) {
    Slices slices;
    while (!sessions.empty()) {
      (*sessions.back().*act)();
      sessions.pop_back();
      if (slices.due(0)) co_await sleep_for(loop, Slices::kPause);
    }
  }

  // Returns how often ticks have to check the timeouts in `options`.
  static std::chrono::milliseconds tick_period(const EndpointOptions& options) {
    std::chrono::milliseconds period = std::min(options.keep_alive, options.session_idle);
    if (options.finished_stream_grace.count() > 0) period = std::min(period, options.finished_stream_grace);
    if (options.request_timeout.count() > 0) period = std::min(period, options.request_timeout);
    return period;
  }

  // Returns a copy of the sessions in a table. Needed for closing them, because that removes them from the
  // table.
  template <class Table>
  static std::vector<typename Table::mapped_type> copy_sessions(const Table& table) {
    std::vector<typename Table::mapped_type> copies;
    for (const auto& [id, session] : table) copies.push_back(session);
    return copies;
  }

  std::vector<std::shared_ptr<WebSocketConnection>> live_websockets() const {
    std::vector<std::shared_ptr<WebSocketConnection>> open;
    for (const auto& [raw, entry] : websockets_) {
      if (auto socket = entry.socket.lock()) open.push_back(std::move(socket));
    }
    return open;
  }

  // Adds the application to those that end_sessions() and drain() concern.
  void note_application(const std::shared_ptr<Application>& application) {
    if (application != application_) applications_.add(application);
  }

  // ---- POST ----

  // Returns true if the body of the request is JSON; otherwise responds with an error.
  static bool require_json(http::Exchange& exchange) {
    if (HeaderFacts::of(exchange.request()).has_json_body) return true;
    exchange.respond(
        to_response(Refusal{415, kRefused, "Unsupported Media Type: Content-Type must be application/json"}));
    return false;
  }

  rpc::Message parse(const Bytes& body) const { return rpc::Message::parse(body, options_->limits); }

  // Parses a large body in slices and calls then(exchange, message), unless the client disconnects meanwhile.
  template <class Then>
  static Task<void> parse_large_body(std::shared_ptr<EndpointImpl> self,
                                     std::shared_ptr<http::Exchange> exchange, Then then) {
    const Bytes body = exchange->request().body;
    rpc::Message message = co_await parse_in_steps(self->loop_, body, self->options_->limits);
    if (!exchange->disconnected()) then(std::move(exchange), std::move(message));
  }

  void handle_post(std::shared_ptr<http::Exchange> exchange,
                   const std::shared_ptr<Application>& application) {
    if (!require_json(*exchange)) return;
    if (!is_large_frame(exchange->request().body)) {
      rpc::Message message = parse(exchange->request().body);
      return handle_message(std::move(exchange), std::move(message), application);
    }
    const auto handle = [self = shared_from_this(), application](std::shared_ptr<http::Exchange> read,
                                                                 rpc::Message message) {
      self->handle_message(std::move(read), std::move(message), application);
    };
    loop_.spawn(parse_large_body(shared_from_this(), std::move(exchange), handle));
  }

  void handle_message(std::shared_ptr<http::Exchange> exchange, rpc::Message message,
                      const std::shared_ptr<Application>& application) {
    if (message.is(rpc::Kind::request)) mcp::CallFacts::attach(message);
    const HeaderParamsLookup header_params =
        [&application, &principal = *exchange->request().principal](std::string_view tool) {
          return application->header_params(tool, principal);
        };
    const Classification classification =
        classify(HeaderFacts::of(exchange->request()), message, header_params);
    if (classification.refusal) return exchange->respond(to_response(*classification.refusal, message.id()));
    if (classification.era == Era::modern)
      return handle_modern(std::move(exchange), std::move(message), application);
    handle_legacy(std::move(exchange), std::move(message), application);
  }

  void handle_modern(std::shared_ptr<http::Exchange> exchange, rpc::Message message,
                     const std::shared_ptr<Application>& application) {
    // In the modern era no notification from a client over HTTP has an effect; they are accepted and ignored.
    if (message.is(rpc::Kind::notification)) return exchange->respond(http::Response(202));
    if (draining_ && message.method() == "subscriptions/listen")
      return exchange->respond(to_response(shutting_down_refusal(), message.id()));
    auto request = make_cached<ModernRequest>(std::move(exchange), std::move(message), *options_);
    note_application(application);
    ModernRequest::start(request, application, ticker_);
  }

  void handle_legacy(std::shared_ptr<http::Exchange> exchange, rpc::Message&& message,
                     const std::shared_ptr<Application>& application) {
    const bool is_handshake = message.is(rpc::Kind::request) && message.method() == "initialize" &&
                              HeaderFacts::of(exchange->request()).session.count == 0;
    const std::shared_ptr<LegacySession> session =
        is_handshake ? create_session(*exchange, message, application)
                     : find_session_or_reject(*exchange, *application, message.id());
    if (session) session->handle_post(std::move(exchange), std::move(message));
  }

  // ---- sessions ----

  // Returns whether the session belongs to the application and to the principal of the request. Other
  // sessions are reported as not found. A session whose principal has other roles or groups by now is ended:
  // its requests would still be served with the former ones.
  template <class Session>
  static bool is_accessible(const http::Exchange& exchange, const Application& application,
                            const std::shared_ptr<Session>& session) {
    const Principal& owner = *session->principal();
    const Principal& client = *exchange.request().principal;
    if (session->binding().application.get() != &application || !same_identity(client, owner)) return false;
    if (client.roles == owner.roles && client.groups == owner.groups) return true;
    session->close();
    return false;
  }

  // Returns the session that the request names. If its principal has no such session, responds with an error
  // and returns null.
  std::shared_ptr<LegacySession> find_session_or_reject(http::Exchange& exchange,
                                                        const Application& application,
                                                        std::string_view request_id) {
    const SingleHeader& id = HeaderFacts::of(exchange.request()).session;
    if (id.count == 0) {
      exchange.respond(
          to_response(Refusal{400, kRefused, "Bad Request: Mcp-Session-Id is missing"}, request_id));
      return nullptr;
    }
    const auto found = sessions_.find(id.value);
    const std::shared_ptr<LegacySession> session = found == sessions_.end() ? nullptr : found->second;
    if (session && is_accessible(exchange, application, session)) return session;
    exchange.respond(to_response(session_not_found_refusal(), request_id));
    return nullptr;
  }

  // Returns true if another session may be created; evicts a session if necessary. Otherwise responds with
  // 503 and returns false.
  bool admit_session_or_reject(http::Exchange& exchange, std::string_view request_id) {
    if (draining_) {
      exchange.respond(to_response(shutting_down_refusal(), request_id));
      return false;
    }
    if (session_count() < options_->max_sessions || evict_session_for(exchange.account().get())) return true;
    const std::string reason = "max_sessions (" + std::to_string(options_->max_sessions) + ") reached";
    options_->log.warning("session rejected", {{"reason", reason}});
    exchange.respond(to_response(Refusal{503, kRefused, reason}, request_id));
    return false;
  }

  // Evicts a session to make room for a new session of `client`. Returns false if no session may be evicted
  // (see EndpointOptions::max_sessions).
  bool evict_session_for(const ByteAccount* client) {
    const SessionCounts counts = count_sessions();
    const auto sessions_of = [&](const ByteAccount* owner) {
      return counts.contains(owner) ? counts.at(owner) : 0;
    };
    const bool below_share = sessions_of(client) < options_->max_client_sessions;
    std::shared_ptr<LegacySession> victim;
    // Prefers sessions without a request since their handshake, then sessions of the client that has the most
    // sessions, then the session that has not been used for the longest time.
    const auto precedes_victim = [&](const LegacySession& session) {
      if (!victim || session.has_had_request() != victim->has_had_request())
        return !victim || !session.has_had_request();
      const std::size_t count = sessions_of(session.account().get());
      const std::size_t victim_count = sessions_of(victim->account().get());
      return count != victim_count ? count > victim_count : session.last_used() < victim->last_used();
    };
    for (const auto& [id, session] : sessions_) {
      const bool over_share = sessions_of(session->account().get()) > options_->max_client_sessions;
      if (!session->is_idle() || (session->has_had_request() && !(below_share && over_share))) continue;
      if (precedes_victim(*session)) victim = session;
    }
    if (!victim) return false;
    options_->log.debug("session evicted: max_sessions reached", {{"session", victim->description()}});
    victim->close();
    return true;
  }

  using SessionCounts = std::unordered_map<const ByteAccount*, std::size_t>;
  SessionCounts count_sessions() const {
    SessionCounts counts;
    for (const auto& [id, session] : sessions_) ++counts[session->account().get()];
    for (const auto& [id, session] : http_sse_sessions_) ++counts[session->account().get()];
    for (const auto& [raw, entry] : websockets_) {
      if (const auto socket = entry.socket.lock()) ++counts[socket->account().get()];
    }
    return counts;
  }

  std::shared_ptr<LegacySession> create_session(http::Exchange& exchange, const rpc::Message& message,
                                                const std::shared_ptr<Application>& application) {
    if (!admit_session_or_reject(exchange, message.id())) return nullptr;
    const PrincipalPtr principal = exchange.request().principal;
    auto session =
        std::make_shared<LegacySession>(loop_, make_session_id(), principal, options_, event_budget_,
                                        [weak = weak_from_this()](const std::string& id) {
                                          if (const auto self = weak.lock()) self->sessions_.erase(id);
                                        });
    session->charge_to(exchange.account());
    session->bind_to(make_binding(application, client_name(message)));
    sessions_.emplace(session->id(), session);
    ticker_.add(*session);
    application->serve(session, principal);
    return session;
  }

  // ---- HTTP+SSE ----

  void serve_sse(std::shared_ptr<http::Exchange> exchange, const std::shared_ptr<Application>& application,
                 const std::string& messages_path) override {
    if (exchange->request().method != "GET") return exchange->respond(method_not_allowed_response("GET"));
    if (!admit_session_or_reject(*exchange, {})) return;
    const std::string id = make_session_id();
    const PrincipalPtr principal = exchange->request().principal;
    auto session = std::make_shared<HttpSseSession>(loop_, id, principal,
                                                    [weak = weak_from_this()](const std::string& ended_id) {
                                                      if (const auto self = weak.lock())
                                                        self->http_sse_sessions_.erase(ended_id);
                                                    });
    session->bind_to(make_binding(application));
    http_sse_sessions_.emplace(id, session);
    ticker_.add(*session);
    session->open(std::move(exchange), messages_path + "?sessionId=" + id);
    application->serve(session, principal);
  }

  void serve_messages(std::shared_ptr<http::Exchange> exchange,
                      const std::shared_ptr<Application>& application) override {
    if (exchange->request().method != "POST") return exchange->respond(method_not_allowed_response("POST"));
    const auto found = http_sse_sessions_.find(query_value(exchange->request().query(), "sessionId"));
    const std::shared_ptr<HttpSseSession> session =
        found == http_sse_sessions_.end() ? nullptr : found->second;
    if (!session || !is_accessible(*exchange, *application, session))
      return exchange->respond(to_response(session_not_found_refusal()));
    if (!require_json(*exchange)) return;
    if (!is_large_frame(exchange->request().body))
      return deliver_to_sse_session(*session, exchange, parse(exchange->request().body));
    const auto deliver = [session](const std::shared_ptr<http::Exchange>& read, const rpc::Message& message) {
      deliver_to_sse_session(*session, read, message);
    };
    loop_.spawn(parse_large_body(shared_from_this(), std::move(exchange), deliver));
  }

  static void deliver_to_sse_session(HttpSseSession& session, const std::shared_ptr<http::Exchange>& exchange,
                                     const rpc::Message& message) {
    if (!message.is(rpc::Kind::malformed)) return session.handle_post(exchange, message);
    const Classification malformed = classify(HeaderFacts(http::Headers()), message, HeaderParamsLookup());
    exchange->respond(to_response(*malformed.refusal, message.id()));
  }

  // ---- WebSocket ----

  void handle_websocket(std::shared_ptr<http::Exchange> exchange,
                        const std::shared_ptr<Application>& application) {
    const http::Headers& headers = exchange->request().headers;
    const std::string key(headers.get("Sec-WebSocket-Key"));
    const std::optional<std::string> nonce = base64_decode(key);
    if (headers.get("Sec-WebSocket-Version") != "13") {
      http::Response response = to_response(Refusal{426, kRefused, "Upgrade Required: WebSocket version 13"});
      response.headers.add("Sec-WebSocket-Version", "13");
      return exchange->respond(std::move(response));
    }
    if (!contains_token(headers.get("Connection"), "upgrade") || !nonce || nonce->size() != 16)
      return exchange->respond(to_response(Refusal{400, kRefused, "Bad Request: not a WebSocket handshake"}));
    if (!admit_session_or_reject(*exchange, {})) return;
    http::Response head(101);
    head.headers.add("Upgrade", "websocket");
    head.headers.add("Connection", "Upgrade");
    head.headers.add("Sec-WebSocket-Accept", websocket::accept_header_value(key));
    if (contains_token(headers.get("Sec-WebSocket-Protocol"), "mcp"))
      head.headers.add("Sec-WebSocket-Protocol", "mcp");
    const PrincipalPtr principal = exchange->request().principal;
    const std::shared_ptr<ByteAccount> account = exchange->account();
    http::Exchange::Upgraded upgraded = exchange->upgrade(std::move(head));
    if (!upgraded.stream) return;
    auto socket =
        WebSocketConnection::create(loop_, std::move(upgraded.stream), std::move(upgraded.read_ahead),
                                    websocket::Role::server, options_->limits, options_->keep_alive);
    socket->charge_to(account);
    websockets_.emplace(socket.get(), WebSocketEntry{socket, principal, make_binding(application)});
    socket->when_ended([weak = weak_from_this(), raw = socket.get()] {
      if (const auto self = weak.lock()) self->websockets_.erase(raw);
    });
    application->serve(socket, principal);
  }

  Loop& loop_;
  std::shared_ptr<Application> application_;  // null: none is served by default
  ApplicationList applications_;
  std::shared_ptr<const EndpointOptions> options_;
  std::shared_ptr<EventStore::SharedBudget> event_budget_;
  Ticker ticker_;
  bool draining_ = false;
  std::uint64_t last_session_number_ = 0;
  // By LegacySession::id().
  std::unordered_map<std::string_view, std::shared_ptr<LegacySession>, IdHash> sessions_;
  StringMap<std::shared_ptr<HttpSseSession>> http_sse_sessions_;
  struct WebSocketEntry {
    std::weak_ptr<WebSocketConnection> socket;
    PrincipalPtr principal;
    SessionBinding binding;
  };
  std::unordered_map<WebSocketConnection*, WebSocketEntry> websockets_;
};

}  // namespace

void Application::end_subscriptions(const std::function<bool(const Principal&)>&) {}

Task<void> Application::drain(std::chrono::milliseconds) {
  co_return;
}

std::shared_ptr<Endpoint> Endpoint::create(Loop& loop, std::shared_ptr<Application> application,
                                           EndpointOptions options) {
  return std::make_shared<EndpointImpl>(loop, std::move(application), std::move(options));
}

}  // namespace fairlead::transport
