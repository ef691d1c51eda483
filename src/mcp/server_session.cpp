#include "mcp/server_session.hpp"

#include <utility>

#include "fairlead/loop/timer.hpp"
#include "fairlead/rpc/codes.hpp"
#include "json/members.hpp"
#include "loop/slices.hpp"
#include "mcp/dialect.hpp"
#include "mcp/dispatch.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::mcp {

namespace {

Error unknown_method(const Request& request) {
  return rpc::method_not_found(request.method());
}

bool is_only_modern(std::string_view method) {
  return find_method(method, kNewest) && !find_method(method, kNewestLegacy);
}

// What a session keeps of its client for as long as it lasts.
constexpr std::size_t kMaxClientDescription = 64u << 10;

// Not a part of the frame, which may be much larger.
json::Raw copy_of(json::View value) {
  return value.absent() ? json::Raw() : json::Raw::trusted(Bytes::copy_of(value.text()));
}

Result<ByteCharge> charge_description(std::shared_ptr<ByteAccount> account, std::size_t bytes) {
  if (bytes > kMaxClientDescription)
    return rpc::invalid_params(
        "capabilities and clientInfo are over the limit max_client_description_bytes (" +
        std::to_string(kMaxClientDescription) + ")");
  ByteCharge charge(std::move(account));
  const ChargeOutcome outcome = charge.resize(bytes);
  if (outcome == ChargeOutcome::charged) return charge;
  return Error::rpc(rpc::kInternalError, charge.refusal(outcome).message());
}

}  // namespace

ServerSession::ServerSession(std::shared_ptr<ServerState> server, Loop& loop, PostedBytes posted, Log log,
                             PrincipalPtr principal, std::shared_ptr<SubscriptionShares> shares)
    : server_(server),
      modern_(std::make_shared<const ModernServer>(
          std::move(server), std::make_shared<Subscriptions>(kMostSubscriptions, std::move(shares)), log)),
      loop_(loop),
      posted_(std::move(posted)),
      log_(std::move(log)),
      principal_(std::move(principal)),
      session_(server_->next_session()) {}

// What is left of a session that has ended and is used on its loop only. The backend forgets the session
// after its subscriptions.
struct ServerSession::Ended {
  explicit Ended(ServerSession& of)
      : server(of.server_),
        session(of.session_),
        account(std::move(of.account_)),
        legacy(std::exchange(of.legacy_, std::nullopt)) {}
  Ended(const Ended&) = delete;
  ~Ended() {
    legacy.reset();
    if (server->backend) server->backend->session_ended(session);
  }

  std::shared_ptr<ServerState> server;
  std::string session;
  std::shared_ptr<ByteAccount> account;
  std::optional<Legacy> legacy;
};

// On any thread: one that tells of a change may have the last reference.
ServerSession::~ServerSession() {
  loop_.spawn(release(std::make_unique<Ended>(*this), loop_));
}

Task<void> ServerSession::release(std::unique_ptr<Ended> ended, Loop& loop) {
  if (!ended->legacy) co_return;
  Task<void> ending = end_subscriptions(std::move(ended->legacy->subscriptions), loop);
  co_await ending;
}

// Pauses, since the end of a subscription may cost the backend a request to a server.
Task<void> ServerSession::end_subscriptions(LegacySubscriptions subscriptions, Loop& loop) {
  Slices slices;
  while (!subscriptions.empty()) {
    subscriptions.erase(subscriptions.begin());
    if (slices.due(0)) co_await sleep_for(loop, Slices::kPause);
  }
}

std::shared_ptr<Peer> ServerSession::start(std::shared_ptr<ServerState> server,
                                           std::shared_ptr<Connection> connection, Limits limits, Log log,
                                           PrincipalPtr principal,
                                           std::shared_ptr<SubscriptionShares> shares) {
  std::shared_ptr<ServerSession> session(new ServerSession(server, connection->loop(),
                                                           PostedBytes(limits.max_backlog_bytes), log,
                                                           std::move(principal), std::move(shares)));
  auto methods = std::make_shared<Methods>();
  methods->otherwise([session](Request request) { return session->handle(std::move(request)); });
  PeerOptions options;
  options.limits = limits;
  options.log = std::move(log);
  options.noise = Noise::skip;  // two programs that answer noise would answer each other for ever
  options.dialect = dialect();
  // Only this revision has arrays; on a stream others are passed over like any line that is no message.
  options.batch_now = [session] {
    return session->legacy_ && session->legacy_->revision == Revision::r2025_03_26;
  };
  options.on_ending = [session] {
    session->modern_->subscriptions->end_all();
    session->server_->tasks->end_session(session->session_);
  };
  session->account_ = connection->account();
  auto peer = Peer::start(std::move(connection), std::move(methods), std::move(options));
  session->peer_ = peer;
  server->listen(session);
  return peer;
}

// ---- requests -------------------------------------------------------------------------------------------

// A request that says which revision it speaks is modern; every other one belongs to the legacy session.
Task<Answer> ServerSession::handle(Request request) {
  std::shared_ptr<const CallFacts> facts = CallFacts::of(request.message());
  if (facts->problem()) return ready_task<Answer>(*facts->problem());
  const bool modern = !facts->protocol_version.absent() || !facts->client_capabilities.absent() ||
                      (!legacy_ && is_only_modern(request.method()));
  return modern ? serve_modern(modern_, std::move(request), std::move(facts), shared_from_this())
                : handle_legacy(std::move(request), std::move(facts));
}

// ---- legacy era -----------------------------------------------------------------------------------------

Task<Answer> ServerSession::handle_legacy(Request request, std::shared_ptr<const CallFacts> facts) {
  if (request.is_notification()) return ready_task<Answer>(json::Raw::null());
  if (std::optional<Error> problem = problem_of(*facts)) return ready_task<Answer>(std::move(*problem));
  if (request.id() == "null")
    return ready_task<Answer>(rpc::invalid_request("Invalid Request: a null id is not allowed"));
  const std::string_view name = request.method();
  if (name == "initialize") return ready_task(initialize(request));
  if (name == "ping") return ready_task<Answer>(json::Raw::trusted(Bytes::constant("{}"), true));
  const MethodInfo* method = find_method(name, legacy_ ? legacy_->revision : kNewestLegacy);
  if (!method || method->sender == Sender::server || method->notification ||
      !has_capability(*server_, method->capability)) {
    return ready_task<Answer>(unknown_method(request));
  }
  if (!legacy_) return ready_task<Answer>(rpc::invalid_request("Invalid Request: initialize comes first"));
  if (name == "logging/setLevel") return ready_task(set_level(request.args()));
  if (name == "resources/unsubscribe") return ready_task(unsubscribe(request.args()));
  if (name == "resources/subscribe") return subscribe(std::move(request));

  std::shared_ptr<RequestState> state = legacy_state();
  state->id = request.id();
  state->meta = part_of(request.message(), facts->meta);
  state->facts = std::move(facts);
  state->stop = request.stop();
  FeatureCall call{server_, std::move(state), std::string(name), request.params(), log_, request.message()};
  return dispatch(std::move(call), *method);
}

// What is known of the client whatever it asks for.
std::shared_ptr<RequestState> ServerSession::legacy_state() {
  auto state = std::make_shared<RequestState>();
  state->revision = legacy_->revision;
  state->link = shared_from_this();
  state->client_capabilities = legacy_->capabilities;
  state->client_info = legacy_->client_info;
  state->log_level = legacy_->log_level;
  return state;
}

Answer ServerSession::initialize(const Request& request) {
  const json::Members params(request.message().members(), request.args(),
                             {"protocolVersion", "capabilities", "clientInfo"});
  const std::optional<std::string> asked = params["protocolVersion"].as_string();
  if (!asked) return rpc::invalid_params("protocolVersion is not a string");
  const json::View capabilities = params["capabilities"];
  if (!capabilities.is(json::Type::object)) return rpc::invalid_params("capabilities is not an object");
  const json::View info = params["clientInfo"];
  if (!info.absent() && !info.is(json::Type::object))
    return rpc::invalid_params("clientInfo is not an object");
  Result<ByteCharge> charge = charge_description(account_, capabilities.text().size() + info.text().size());
  if (!charge) return charge.error();
  // The two lists never mix: a modern version is not negotiated here.
  const std::optional<Revision> known = revision_named(*asked);
  const Revision revision = known && !is_modern(*known) ? *known : kNewestLegacy;
  if (legacy_) loop_.spawn(end_subscriptions(std::move(legacy_->subscriptions), loop_));
  legacy_ = Legacy{.revision = revision,
                   .capabilities = copy_of(capabilities),
                   .client_info = copy_of(info),
                   .charge = std::move(*charge),
                   .log_level = LoggingLevel::debug,
                   .subscriptions = {}};
  if (server_->backend) {
    server_->backend->session_began(session_, [weak = weak_from_this()] {
      const auto self = weak.lock();
      return self ? std::optional<Context>(self->legacy_state()) : std::nullopt;
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

Answer ServerSession::set_level(json::View params) {
  constexpr std::size_t kLongestLevel = 16;
  const std::optional<LoggingLevel> level =
      logging_level_named(params["level"].as_string(kLongestLevel).value_or(""));
  if (!level) return rpc::invalid_params("level is not a logging level");
  legacy_->log_level = *level;
  if (server_->backend) server_->backend->log_level_set(session_, *level);
  return json::Raw::trusted(Bytes::constant("{}"), true);
}

Task<Answer> ServerSession::subscribe(Request request) {
  const json::View given = request.message().param("uri");
  if (!given.is(json::Type::string)) co_return rpc::invalid_params("uri is not a string");
  const std::optional<std::string> uri = given.as_string(kMostUriBytes);
  if (!uri)
    co_return rpc::invalid_params("uri is over the limit max_uri_bytes (" + std::to_string(kMostUriBytes) +
                                  ")");
  if (legacy_->subscriptions.size() >= kMostUris && !legacy_->subscriptions.contains(*uri))
    co_return too_many_resources();
  if (is_subscribed(*uri)) co_return json::Raw::trusted(Bytes::constant("{}"), true);
  Result<SubscriptionShares::Share> share = modern_->subscriptions->shares().take(*principal_, 1);
  if (!share) co_return share.error();
  const auto place = std::make_shared<LegacySubscription>(std::move(*share));
  legacy_->subscriptions.insert_or_assign(*uri, place);
  if (server_->backend) {
    // The client may unsubscribe meanwhile, or subscribe once more: then what is made is let go of here.
    Task<Result<std::shared_ptr<void>>> subscribing = subscribe_at_backend(*uri, request.stop());
    Result<std::shared_ptr<void>> made = co_await subscribing;
    if (made && request.stop().stop_requested()) made = Error(ErrorKind::cancelled, "given up");
    if (!made) {
      const auto still = legacy_->subscriptions.find(*uri);
      if (still != legacy_->subscriptions.end() && still->second == place)
        legacy_->subscriptions.erase(still);
      co_return made.error();
    }
    place->at_backend = std::move(*made);
  }
  co_return json::Raw::trusted(Bytes::constant("{}"), true);
}

// One that is only being made does not count: it may come to nothing, or be cancelled.
bool ServerSession::is_subscribed(const std::string& uri) const {
  const auto known = legacy_->subscriptions.find(uri);
  return known != legacy_->subscriptions.end() && (!server_->backend || known->second->made_at_backend());
}

Task<Result<std::shared_ptr<void>>> ServerSession::subscribe_at_backend(std::string uri,
                                                                        std::stop_token stop) {
  BackendSubscription subscription(std::move(uri), session_, principal_);
  subscription.stop = std::move(stop);
  subscription.updated = [weak = weak_from_this()](const std::string& changed) {
    const auto self = weak.lock();
    if (!self) return;
    if (self->loop_.here()) return self->tell_updated(changed);
    if (!self->pending_.add(changed, self->posted_, self->log_)) return;
    self->loop_.post([self, changed] {
      self->pending_.take(changed);
      self->tell_updated(changed);
    });
  };
  return server_->backend->subscribe(std::move(subscription));
}

Answer ServerSession::unsubscribe(json::View params) {
  const json::View given = params["uri"];
  if (!given.is(json::Type::string)) return rpc::invalid_params("uri is not a string");
  // A longer one is that of no subscription.
  if (const std::optional<std::string> uri = given.as_string(kMostUriBytes))
    legacy_->subscriptions.erase(*uri);
  return json::Raw::trusted(Bytes::constant("{}"), true);
}

// ---- both: the way back to the client -------------------------------------------------------------------

void ServerSession::notify(std::string_view method, const json::Raw& params, std::string_view about) {
  const auto peer = peer_.lock();
  if (!peer) return;
  const Result<void> posted = peer->post_notification(method, params, Concerning{about});
  if (!posted)
    log_.debug("notification not sent",
               {{"method", std::string(method)}, {"reason", posted.error().message()}});
}

Task<Result<json::Raw>> ServerSession::request(std::string method, json::Raw params, std::string about,
                                               std::stop_token stop) {
  const auto peer = peer_.lock();
  if (!peer) co_return Error(ErrorKind::closed, "the client is gone");
  // People answer these: they take their time.
  CallOptions options(std::chrono::minutes(10));
  options.stop = std::move(stop);
  options.concerning = std::move(about);
  Result<json::Raw> answer = co_await peer->call(method, std::move(params), std::move(options));
  co_return answer;
}

void ServerSession::close_stream(std::string_view about) {
  if (const auto peer = peer_.lock()) peer->connection().close_stream_of(about);
}

void ServerSession::list_changed(ListKind kind) {
  if (!pending_.add(kind)) return;
  loop_.post([self = shared_from_this(), kind] {
    self->pending_.take(kind);
    self->tell_list_changed(kind);
  });
}

void ServerSession::resource_updated(const std::string& uri) {
  if (!pending_.add(uri, posted_, log_)) return;
  loop_.post([self = shared_from_this(), uri] {
    self->pending_.take(uri);
    if (self->legacy_ && self->legacy_->subscriptions.contains(uri)) self->tell_updated(uri);
  });
}

// Legacy clients are told of changes as soon as they are there.
void ServerSession::tell_list_changed(ListKind kind) {
  if (legacy_) notify(changed_method(kind), json::Raw(), {});
}

void ServerSession::tell_updated(const std::string& uri) {
  json::Writer params;
  params.begin_object().key("uri").string(uri).end_object();
  notify("notifications/resources/updated", params.finish(), {});
}

}  // namespace fairlead::mcp
