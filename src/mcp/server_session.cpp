#include "mcp/server_session.hpp"

#include <utility>

#include "fairlead/base/block_cache.hpp"
#include "fairlead/loop/timer.hpp"
#include "fairlead/rpc/codes.hpp"
#include "json/members.hpp"
#include "loop/slices.hpp"
#include "mcp/dialect.hpp"
#include "mcp/dispatch.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::mcp {

namespace {

Error unknown_method_error(const Request& request) {
  return rpc::method_not_found(request.method());
}

bool is_only_modern(std::string_view method) {
  return find_method(method, kNewestRevision) && !find_method(method, kNewestLegacyRevision);
}

// Maximum size of the description of a client (capabilities and clientInfo), which its session stores.
constexpr std::size_t kMaxClientDescriptionBytes = 64u << 10;

// Copies the value, since sharing the frame of the message would keep the whole frame in memory.
json::Raw copy_of(json::View value) {
  return value.absent() ? json::Raw() : json::Raw::trusted(Bytes::copy_of(value.text()));
}

Result<ByteCharge> charge_description(std::shared_ptr<ByteAccount> account, std::size_t bytes) {
  if (bytes > kMaxClientDescriptionBytes)
    return rpc::invalid_params(
        "capabilities and clientInfo are over the limit max_client_description_bytes (" +
        std::to_string(kMaxClientDescriptionBytes) + ")");
  ByteCharge charge(std::move(account));
  const ChargeOutcome outcome = charge.resize(bytes);
  if (outcome == ChargeOutcome::charged) return charge;
  return Error::rpc(rpc::kInternalError, charge.refusal_error(outcome).message());
}

}  // namespace

ServerSession::ServerSession(std::shared_ptr<ServerState> server, Loop& loop, PostedBytes posted, Log log,
                             PrincipalPtr principal, std::shared_ptr<SubscriptionQuota> quota)
    : server_(std::move(server)),
      quota_(std::move(quota)),
      loop_(loop),
      posted_bytes_(std::move(posted)),
      log_(std::move(log)),
      principal_(std::move(principal)),
      session_(server_->next_session_id()) {
  methods_.fallback([this](Request request) { return handle_request(std::move(request)); },
                    [this](const rpc::Message& message, const std::stop_token& stop,
                           const std::shared_ptr<Responder>& responder) {
                      return serve_directly(message, stop, responder);
                    });
}

// The state of an ended session, which is released on the loop of the session. The destructor notifies the
// backend that the session has ended, after the subscriptions have been released.
struct ServerSession::EndedSession {
  explicit EndedSession(ServerSession& ended)
      : server(ended.server_),
        session(ended.session_),
        account(std::move(ended.account_)),
        legacy(std::exchange(ended.legacy_, std::nullopt)) {}
  EndedSession(const EndedSession&) = delete;
  ~EndedSession() {
    legacy.reset();
    if (server->backend) server->backend->on_session_ended(session);
  }

  std::shared_ptr<ServerState> server;
  std::string session;
  std::shared_ptr<ByteAccount> account;
  std::optional<LegacyState> legacy;
};

// May run on any thread: a thread that calls ChangeListener methods may own the last reference.
ServerSession::~ServerSession() {
  loop_.spawn(release_session_state(std::make_unique<EndedSession>(*this), loop_));
}

Task<void> ServerSession::release_session_state(std::unique_ptr<EndedSession> ended, Loop& loop) {
  if (!ended->legacy) co_return;
  co_await end_subscriptions(std::move(ended->legacy->subscriptions), loop);
}

// Works in slices, since the end of a subscription may cause a request of the backend to a server.
Task<void> ServerSession::end_subscriptions(LegacySubscriptions subscriptions, Loop& loop) {
  Slices slices;
  while (!subscriptions.empty()) {
    subscriptions.erase(subscriptions.begin());
    if (slices.due(0)) co_await sleep_for(loop, Slices::kPause);
  }
}

std::shared_ptr<const PeerSettings> ServerSession::make_settings(Limits limits, Log log) {
  auto settings = std::make_shared<PeerSettings>();
  settings->limits = limits;
  settings->log = std::move(log);
  settings->malformed_frames =
      MalformedFramePolicy::skip;  // a peer that answers each one could answer another such peer for ever
  settings->dialect = dialect();
  return settings;
}

std::shared_ptr<Peer> ServerSession::start(std::shared_ptr<ServerState> server,
                                           std::shared_ptr<Connection> connection,
                                           std::shared_ptr<const PeerSettings> settings,
                                           PrincipalPtr principal, std::shared_ptr<SubscriptionQuota> quota) {
  std::shared_ptr<ServerSession> session(
      new ServerSession(server, connection->loop(), PostedBytes(settings->limits.max_backlog_bytes),
                        settings->log, std::move(principal), std::move(quota)));
  // The callbacks refer to the session by a pointer, because the peer owns the methods and thus the session.
  std::shared_ptr<const Methods> methods(session, &session->methods_);
  PeerCallbacks callbacks;
  // Only revision 2025-03-26 has batches. In all other revisions an array is skipped like any malformed
  // frame.
  callbacks.batches_allowed = [raw = session.get()] {
    return raw->legacy_ && raw->legacy_->revision == Revision::r2025_03_26;
  };
  callbacks.on_draining = [raw = session.get()] {
    if (raw->modern_) raw->modern_->subscriptions->end_all();
    raw->server_->task_store->end_session(raw->session_);
  };
  session->account_ = connection->account();
  auto peer =
      Peer::start(std::move(connection), std::move(methods), std::move(settings), std::move(callbacks));
  session->peer_ = peer;
  server->add_listener(session);
  return peer;
}

// ---- requests -------------------------------------------------------------------------------------------

// A request is modern if it contains a member of the envelope, or if it precedes initialize and its method
// exists only in the modern era. Every other request belongs to the legacy session.
Task<Answer> ServerSession::handle_request(Request request) {
  std::shared_ptr<const CallFacts> facts = CallFacts::of(request.message());
  if (facts->problem()) return ready_task<Answer>(*facts->problem());
  const bool modern = !facts->protocol_version.absent() || !facts->client_capabilities.absent() ||
                      (!legacy_ && is_only_modern(request.method()));
  return modern ? serve_modern(this->modern(), std::move(request), std::move(facts), shared_from_this())
                : handle_legacy_request(std::move(request), std::move(facts));
}

bool ServerSession::serve_directly(const rpc::Message& message, const std::stop_token& stop,
                                   const std::shared_ptr<Responder>& responder) {
  if (!may_serve_directly(*server_, message)) return false;
  std::shared_ptr<const CallFacts> facts = CallFacts::of(message);
  if (check_request_params(*facts)) return false;
  if (!facts->protocol_version.absent() || !facts->client_capabilities.absent())
    return serve_modern_directly(*modern(), message, stop, std::move(facts), shared_from_this(), responder);
  if (!legacy_) return false;
  std::shared_ptr<RequestState> state = make_legacy_request_state(message.id());
  state->meta = part_of(message, facts->meta);
  state->facts = facts;
  state->stop = stop;
  return server_->backend->serve_directly({message, std::move(facts), Context(std::move(state))}, responder);
}

const std::shared_ptr<const ModernServer>& ServerSession::modern() {
  if (!modern_)
    modern_ = std::make_shared<const ModernServer>(
        server_, std::make_shared<SubscriptionRegistry>(kMaxListens, quota_), log_);
  return modern_;
}

// ---- legacy era -----------------------------------------------------------------------------------------

Task<Answer> ServerSession::handle_legacy_request(Request request, std::shared_ptr<const CallFacts> facts) {
  if (request.is_notification()) return ready_task<Answer>(json::Raw::null());
  if (std::optional<Error> problem = check_request_params(*facts))
    return ready_task<Answer>(std::move(*problem));
  if (request.id() == "null")
    return ready_task<Answer>(rpc::invalid_request("Invalid Request: a null id is not allowed"));
  const std::string_view name = request.method();
  if (name == "initialize") return ready_task(handle_initialize(request));
  if (name == "ping") return ready_task<Answer>(json::Raw::trusted(Bytes::constant("{}"), true));
  const MethodInfo* method = find_method(name, legacy_ ? legacy_->revision : kNewestLegacyRevision);
  if (!method || method->sender == Sender::server || method->is_notification ||
      !has_capability(*server_, method->capability)) {
    return ready_task<Answer>(unknown_method_error(request));
  }
  if (!legacy_)
    return ready_task<Answer>(rpc::invalid_request("Invalid Request: initialize must be the first request"));
  if (name == "logging/setLevel") return ready_task(handle_set_level(request.params_view()));
  if (name == "resources/unsubscribe") return ready_task(handle_unsubscribe(request.params_view()));
  if (name == "resources/subscribe") return handle_subscribe(std::move(request));

  std::shared_ptr<RequestState> state = make_legacy_request_state(request.id());
  state->meta = part_of(request.message(), facts->meta);
  state->facts = std::move(facts);
  state->stop = request.stop();
  FeatureRequest feature_request{server_, std::move(state), std::string(name), request.params(),
                                 log_,    request.message()};
  return dispatch(std::move(feature_request), *method);
}

// Makes a request state with the data that the session has stored about the client. The caller adds the data
// of the request, if there is one.
std::shared_ptr<RequestState> ServerSession::make_legacy_request_state(std::string_view request_id) {
  auto state = make_cached<RequestState>(request_id);
  state->revision = legacy_->revision;
  state->link = shared_from_this();
  state->client_capabilities = legacy_->capabilities;
  state->client_info = legacy_->client_info;
  state->log_level = legacy_->log_level;
  return state;
}

Answer ServerSession::handle_initialize(const Request& request) {
  const json::Members params(request.message().members(), request.params_view(),
                             {"protocolVersion", "capabilities", "clientInfo"});
  const std::optional<std::string> requested = params["protocolVersion"].as_string();
  if (!requested) return rpc::invalid_params("protocolVersion is not a string");
  const json::View capabilities = params["capabilities"];
  if (!capabilities.is(json::Type::object)) return rpc::invalid_params("capabilities is not an object");
  const json::View info = params["clientInfo"];
  if (!info.absent() && !info.is(json::Type::object))
    return rpc::invalid_params("clientInfo is not an object");
  Result<ByteCharge> charge = charge_description(account_, capabilities.text().size() + info.text().size());
  if (!charge) return charge.error();
  // initialize never negotiates a revision of the modern era.
  const std::optional<Revision> known = revision_named(*requested);
  const Revision revision = known && !is_modern(*known) ? *known : kNewestLegacyRevision;
  if (legacy_) loop_.spawn(end_subscriptions(std::move(legacy_->subscriptions), loop_));
  legacy_ = LegacyState{.revision = revision,
                        .capabilities = copy_of(capabilities),
                        .client_info = copy_of(info),
                        .charge = std::move(*charge),
                        .log_level = LoggingLevel::debug,
                        .subscriptions = {}};
  if (server_->backend) {
    server_->backend->on_session_began(session_, [weak = weak_from_this()] {
      const auto self = weak.lock();
      return self ? std::optional<Context>(self->make_legacy_request_state()) : std::nullopt;
    });
  }
  json::Writer out;
  out.begin_object().key("protocolVersion").string(to_string(revision)).key("capabilities");
  write_capabilities(out, *server_, revision);
  out.key("serverInfo");
  write(out, server_->info, revision);
  if (!server_->instructions.empty()) out.key("instructions").string(server_->instructions);
  out.end_object();
  return out.finish();
}

Answer ServerSession::handle_set_level(json::View params) {
  constexpr std::size_t kMaxLevelBytes = 16;
  const std::optional<LoggingLevel> level =
      logging_level_named(params["level"].as_string(kMaxLevelBytes).value_or(""));
  if (!level) return rpc::invalid_params("level is not a logging level");
  legacy_->log_level = *level;
  if (server_->backend) server_->backend->on_log_level_set(session_, *level);
  return json::Raw::trusted(Bytes::constant("{}"), true);
}

Task<Answer> ServerSession::handle_subscribe(Request request) {
  const json::View uri_param = request.message().param("uri");
  if (!uri_param.is(json::Type::string)) co_return rpc::invalid_params("uri is not a string");
  const std::optional<std::string> uri = uri_param.as_string(kMaxSubscribedUriBytes);
  if (!uri)
    co_return rpc::invalid_params("uri is over the limit max_uri_bytes (" +
                                  std::to_string(kMaxSubscribedUriBytes) + ")");
  if (legacy_->subscriptions.size() >= kMaxSubscribedUris && !legacy_->subscriptions.contains(*uri))
    co_return too_many_subscribed_resources_error();
  if (is_subscribed(*uri)) co_return json::Raw::trusted(Bytes::constant("{}"), true);
  Result<SubscriptionQuota::Charge> charge = quota_->charge(*principal_, 1);
  if (!charge) co_return charge.error();
  const auto subscription = std::make_shared<LegacySubscription>(std::move(*charge));
  legacy_->subscriptions.insert_or_assign(*uri, subscription);
  if (server_->backend) {
    // Meanwhile the client may unsubscribe or subscribe again. Then `subscription` is no longer in the map,
    // and the handle of the backend is released with `subscription` when this function returns.
    Result<std::shared_ptr<void>> handle = co_await subscribe_at_backend(*uri, request.stop());
    if (handle && request.stop().stop_requested())
      handle = Error(ErrorKind::cancelled, "the client cancelled the request");
    if (!handle) {
      const auto current = legacy_->subscriptions.find(*uri);
      if (current != legacy_->subscriptions.end() && current->second == subscription)
        legacy_->subscriptions.erase(current);
      co_return handle.error();
    }
    subscription->backend_subscription = std::move(*handle);
  }
  co_return json::Raw::trusted(Bytes::constant("{}"), true);
}

// A subscription does not count before the backend has completed it, since it may still fail or be cancelled.
bool ServerSession::is_subscribed(const std::string& uri) const {
  const auto known = legacy_->subscriptions.find(uri);
  return known != legacy_->subscriptions.end() &&
         (!server_->backend || known->second->has_backend_subscription());
}

Task<Result<std::shared_ptr<void>>> ServerSession::subscribe_at_backend(std::string uri,
                                                                        std::stop_token stop) {
  BackendSubscription subscription(std::move(uri), session_, principal_);
  subscription.stop = std::move(stop);
  subscription.on_updated = [weak = weak_from_this()](const std::string& changed) {
    const auto self = weak.lock();
    if (!self) return;
    if (self->loop_.in_loop_thread()) return self->send_resource_updated(changed);
    if (!self->pending_changes_.add(changed, self->posted_bytes_, self->log_)) return;
    self->loop_.post([self, changed] {
      self->pending_changes_.remove(changed);
      self->send_resource_updated(changed);
    });
  };
  return server_->backend->subscribe(std::move(subscription));
}

Answer ServerSession::handle_unsubscribe(json::View params) {
  const json::View uri_param = params["uri"];
  if (!uri_param.is(json::Type::string)) return rpc::invalid_params("uri is not a string");
  // A longer URI is ignored, since no subscription has one.
  if (const std::optional<std::string> uri = uri_param.as_string(kMaxSubscribedUriBytes))
    legacy_->subscriptions.erase(*uri);
  return json::Raw::trusted(Bytes::constant("{}"), true);
}

// ---- both eras: messages to the client ------------------------------------------------------------------

void ServerSession::notify(std::string_view method, const json::Raw& params,
                           std::string_view related_request) {
  const auto peer = peer_.lock();
  if (!peer) return;
  const Result<void> posted = peer->post_notification(method, params, RelatedRequest{related_request});
  if (!posted)
    log_.debug("notification not sent",
               {{"method", std::string(method)}, {"reason", posted.error().message()}});
}

Task<Result<json::Raw>> ServerSession::request(std::string method, json::Raw params,
                                               std::string related_request, std::stop_token stop) {
  const auto peer = peer_.lock();
  if (!peer) co_return Error(ErrorKind::closed, "the client has disconnected");
  // Long enough for a user to answer.
  CallOptions options(std::chrono::minutes(10));
  options.stop = std::move(stop);
  options.related_request_id = std::move(related_request);
  Result<json::Raw> answer = co_await peer->call(method, std::move(params), std::move(options));
  co_return answer;
}

void ServerSession::close_stream(std::string_view related_request) {
  if (const auto peer = peer_.lock()) peer->connection().close_request_stream(related_request);
}

void ServerSession::on_list_changed(ListKind kind) {
  if (!pending_changes_.add(kind)) return;
  loop_.post([self = shared_from_this(), kind] {
    self->pending_changes_.remove(kind);
    self->send_list_changed(kind);
  });
}

void ServerSession::on_resource_updated(const std::string& uri) {
  if (!pending_changes_.add(uri, posted_bytes_, log_)) return;
  loop_.post([self = shared_from_this(), uri] {
    self->pending_changes_.remove(uri);
    if (self->legacy_ && self->legacy_->subscriptions.contains(uri)) self->send_resource_updated(uri);
  });
}

// A legacy client is notified of list changes from initialize on, without a subscription.
void ServerSession::send_list_changed(ListKind kind) {
  if (legacy_) notify(list_changed_method(kind), json::Raw(), {});
}

void ServerSession::send_resource_updated(const std::string& uri) {
  json::Writer params;
  params.begin_object().key("uri").string(uri).end_object();
  notify("notifications/resources/updated", params.finish(), {});
}

}  // namespace fairlead::mcp
