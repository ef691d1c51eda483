#include "fairlead/gateway/gateway.hpp"

#include <cerrno>

#include "fairlead/json/members.hpp"
#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"
#include "gateway/failure.hpp"
#include "gateway/gateway_impl.hpp"
#include "gateway/names.hpp"
#include "protocol/envelope.hpp"
#include "protocol/slices.hpp"

namespace fairlead::gateway {

namespace {

constexpr int kMostRounds = 10;
constexpr std::size_t kMaxMembers = mcp::ListLimits().max_message_members;
constexpr std::size_t kMaxNameBytes = 1024;  // of a tool's or prompt's name in a request, as JSON

mcp::Implementation own_name() {
  return mcp::Implementation{"fairlead", FAIRLEAD_VERSION, "Fairlead gateway", {}, {}, {}};
}

PassedRequest::Asker asker_of(const mcp::Context& context) {
  return PassedRequest::Asker{context.revision(), context.client_capabilities(), context.client_info(),
                              context.log_level()};
}

Error resource_not_found(const std::string& uri) {
  return refusal_of(rpc::kInvalidParams, "Resource not found: no server here has `" + uri + "`",
                    failure::unknown_name);
}

// Empty if there is none, or none that a server could have.
std::string name_in(const rpc::Message& message) {
  const json::View params(message.params_text());
  const json::View ref = message.method() == "completion/complete" ? params["ref"] : params;
  const json::View name = ref["name"];
  return name.text().size() > kMaxNameBytes ? std::string() : name.as_string().value_or("");
}

// A call waits for the first list of its server, so that server is not to be started in the background.
Task<void> start_for_call(std::shared_ptr<pool::Pool> pool, std::string server, std::stop_token stop) {
  pool::Target target(std::move(server));
  Task<Result<pool::Lease>> acquiring = pool->acquire(std::move(target), std::move(stop));
  const Result<pool::Lease> lease = co_await acquiring;
  static_cast<void>(lease);  // whoever lists says what is wrong
}

// What the front's sessions hold on to: they may outlive the gateway.
class Front final : public mcp::Backend {
 public:
  explicit Front(std::weak_ptr<mcp::Backend> gateway) : gateway_(std::move(gateway)) {}

  bool has_capability(std::string_view capability) const override {
    const auto gateway = gateway_.lock();
    return gateway && gateway->has_capability(capability);
  }
  Task<Answer> serve(mcp::BackendRequest request) override {
    const auto gateway = gateway_.lock();
    return gateway ? gateway->serve(std::move(request)) : gone();
  }
  mcp::HeaderParams header_params(std::string_view tool) const override {
    const auto gateway = gateway_.lock();
    return gateway ? gateway->header_params(tool) : nullptr;
  }
  Task<Result<std::shared_ptr<void>>> subscribe(mcp::BackendSubscription subscription) override {
    const auto gateway = gateway_.lock();
    return gateway ? gateway->subscribe(std::move(subscription)) : nothing_to_hear();
  }
  void session_began(std::string_view session, Reach reach) override {
    if (const auto gateway = gateway_.lock()) gateway->session_began(session, std::move(reach));
  }
  void log_level_set(std::string_view session, mcp::LoggingLevel level) override {
    if (const auto gateway = gateway_.lock()) gateway->log_level_set(session, level);
  }
  void session_ended(std::string_view session) override {
    if (const auto gateway = gateway_.lock()) gateway->session_ended(session);
  }

 private:
  static Error shut_down() {
    return refusal_of(rpc::kInternalError, "The gateway has been shut down", failure::gateway_shut_down);
  }
  static Task<Answer> gone() { co_return shut_down(); }
  static Task<Result<std::shared_ptr<void>>> nothing_to_hear() { co_return shut_down(); }

  std::weak_ptr<mcp::Backend> gateway_;
};

}  // namespace

Result<std::shared_ptr<Gateway>> Gateway::create(Loop& loop, Config config, Log log) {
  auto made = std::make_shared<GatewayImpl>(loop, std::move(config), std::move(log));
  const Result<void> started = made->start();
  if (!started) return started.error();
  return made;
}

GatewayImpl::GatewayImpl(Loop& loop, Config config, Log log)
    : loop_(loop), config_(std::move(config)), log_(std::move(log)), front_(own_name()) {}

Limits frame_limits(const Config& config) {
  Limits limits;
  limits.max_frame_bytes = config.max_frame_bytes;
  limits.max_noise_frames = config.max_noise_frames;
  // One of them must find room while it waits to be sent.
  limits.max_backlog_bytes = std::max(limits.max_backlog_bytes, 2 * limits.max_frame_bytes);
  return limits;
}

Result<void> GatewayImpl::start() {
  pool::PoolOptions options;
  options.limits = config_.limits;
  options.client.info = own_name();
  options.client.connect.log = log_;
  options.client.connect.limits = frame_limits(config_);
  options.handlers = handlers();
  pool_ = pool::Pool::create(loop_, std::move(options));
  watches_ = std::make_shared<Watches>(loop_, pool_, log_);
  front_.backend(std::make_shared<Front>(weak_from_this()));
  if (!config_.terminator_manifest.empty()) {
    // What a former life of ours left in it is done with; what is alive stays.
    const Result<void> compacted = compact_manifest(config_.terminator_manifest);
    const bool locked = !compacted && compacted.error().detail().os_error == EWOULDBLOCK;
    if (locked) log_.warning("manifest not compacted", {{"reason", compacted.error().message()}});
    if (!compacted && !locked) return compacted.error();
  }
  for (const pool::ServerSpec& spec : config_.servers) {
    const Result<void> added = add_server(spec);
    if (!added) return added.error();
  }
  if (known_.empty()) listed_.set();
  for (const auto& [server, known] : known_) refresh(server, nullptr);
  return {};
}

// ---- the backend -----------------------------------------------------------------------------------------

// Advertised from the beginning: what servers have is known only when they have been started, and clients ask
// once.
bool GatewayImpl::has_capability(std::string_view capability) const {
  return capability == "tools" || capability == "resources" || capability == "prompts" ||
         capability == "logging" || capability == "completions";
}

mcp::HeaderParams GatewayImpl::header_params(std::string_view tool) const {
  const Offer* const offer = catalogue_->tool(tool);
  return offer ? offer->header_params : nullptr;
}

Task<Answer> GatewayImpl::serve(mcp::BackendRequest request) {
  const auto keep = shared_from_this();
  const std::string_view method = request.message.method();
  for (const Kind kind : kKinds) {
    if (method != list_method(kind)) continue;
    Task<Answer> listing = list(kind, std::move(request));
    Answer answer = co_await listing;
    co_return answer;
  }
  Result<Route> found = route(request.message, request.context);
  if (!found && may_list_yet(request.message)) {
    if (const std::string* const server = server_named_in(request.message))
      loop_.spawn(start_for_call(pool_, *server, request.context.stop()));
  }
  const Clock::time_point until = Clock::now() + config_.list_wait;
  while (!found && may_list_yet(request.message) && Clock::now() < until) {
    const bool one = co_await listed_one_.wait(loop_, until - Clock::now());
    static_cast<void>(one);
    found = route(request.message, request.context);
  }
  if (!found) co_return found.error();
  Task<Answer> passing = pass(std::move(request), *found);
  Answer answer = co_await passing;
  co_return answer;
}

// A tool's or prompt's name says whose it is.
bool GatewayImpl::may_list_yet(const rpc::Message& message) const {
  const std::string name = name_in(message);
  if (name.empty()) return !listed_.is_set();
  const std::string* const server = server_named_in(message);
  return server && !known_.at(*server).asked;
}

const std::string* GatewayImpl::server_named_in(const rpc::Message& message) const {
  const std::string name = name_in(message);
  const auto known = known_.find(name.substr(0, name.find("__")));
  return known == known_.end() || known->second.removed ? nullptr : &known->first;
}

// A name that begins with that of a server which could not list may well be one of its names.
Error GatewayImpl::unknown_name(std::string_view what, const std::string& name) const {
  const auto known = known_.find(name.substr(0, name.find("__")));
  if (known != known_.end() && known->second.failure && !known->second.shared.listed)
    return failure_of(known->first, *known->second.failure);
  return refusal_of(rpc::kInvalidParams, "Unknown " + std::string(what) + ": " + name, failure::unknown_name);
}

Result<GatewayImpl::Route> GatewayImpl::route(const rpc::Message& message, const mcp::Context& context) {
  const json::View params(message.params_text());
  const std::string_view method = message.method();
  const json::Members ref(method == "completion/complete" ? params["ref"] : params, {"type", "name", "uri"});
  const bool is_resource = method == "resources/read" || ref["type"].as_string() == "ref/resource";
  const json::View key = ref[is_resource ? "uri" : "name"];
  if (!is_resource && key.text().size() > kMaxNameBytes)
    return refusal_of(rpc::kInvalidParams,
                      "name is over the limit max_name_bytes (" + std::to_string(kMaxNameBytes) + ")",
                      failure::invalid_request);
  const std::optional<std::string> name = key.as_string();
  if (!name)
    return refusal_of(rpc::kInvalidParams,
                      std::string(is_resource ? "uri" : "name") + " is missing or not a string",
                      failure::invalid_request);
  const auto catalogue = catalogue_for(context.session(), context.user());
  if (is_resource) {
    const Result<const std::string*> server = catalogue->server_of_resource(*name, listed_.is_set());
    if (!server) return server.error();
    if (!*server) return resource_not_found(*name);
    return Route{catalogue, **server, std::nullopt, json::View()};
  }
  const bool is_tool = method == "tools/call";
  const Offer* const offer = is_tool ? catalogue->tool(*name) : catalogue->prompt(*name);
  if (!offer) return unknown_name(is_tool ? "tool" : "prompt", *name);
  return Route{catalogue, offer->server, Rename{key, offer->name},
               is_tool ? json::View(offer->entry) : json::View()};
}

// ---- clients ---------------------------------------------------------------------------------------------

Task<Result<std::shared_ptr<void>>> GatewayImpl::subscribe(mcp::BackendSubscription subscription) {
  const auto keep = shared_from_this();
  const auto server_of = [&]() -> Result<std::string> {
    const auto catalogue = catalogue_for(subscription.session, subscription.user);
    const Result<const std::string*> found =
        catalogue->server_of_resource(subscription.uri, listed_.is_set());
    if (!found) return found.error();
    return *found ? **found : std::string();
  };
  Result<std::string> server = server_of();
  const Clock::time_point until = Clock::now() + config_.list_wait;
  while (server && server->empty() && !listed_.is_set() && Clock::now() < until) {
    const bool one = co_await listed_one_.wait(loop_, until - Clock::now());
    static_cast<void>(one);
    server = server_of();
  }
  if (!server) co_return server.error();
  if (server->empty()) co_return resource_not_found(subscription.uri);
  pool::Target target(*server, std::move(subscription.session), std::move(subscription.user));
  Task<Result<std::shared_ptr<void>>> subscribing =
      watches_->subscribe(std::move(target), std::move(subscription.uri), std::move(subscription.stop),
                          std::move(subscription.updated));
  Result<std::shared_ptr<void>> made = co_await subscribing;
  if (!made && made.error().kind() != ErrorKind::remote) co_return failure_of(*server, made.error());
  co_return made;
}

void GatewayImpl::session_began(std::string_view session, Reach reach) {
  sessions_.insert_or_assign(std::string(session), std::move(reach));
}

void GatewayImpl::session_ended(std::string_view session) {
  if (session.empty()) return;
  sessions_.erase(std::string(session));
  levels_.erase(std::string(session));
  for (auto& [name, known] : known_) {
    if (!known.per_user) known.own.erase(std::string(session));
  }
  forget_views();
  if (stopping_) return;
  pool_->end_session(session);
  adjust_levels();
}

// ---- calls -----------------------------------------------------------------------------------------------

Task<Answer> GatewayImpl::pass(mcp::BackendRequest request, Route route) {
  const auto keep = shared_from_this();
  const mcp::Context context = request.context;
  const std::string method(request.message.method());
  const mcp::Revision server_revision = known_[route.server].revision;
  const PassedRequest passed(request.message, route.rename);
  auto passage = std::make_shared<Passage>(context);
  const bool large = request.message.frame().size() > mcp::Slices::kLargeMessage;
  if (large) co_await sleep_for(loop_, mcp::Slices::kPause);
  json::Raw answers;
  json::Raw state;
  for (int round = 0; round < kMostRounds; ++round) {
    pool::ForwardOptions options;
    options.stop = context.stop();
    options.repeatable = pool::repeatable(method, route.entry);
    options.caller = passage;
    options.on_progress = [context](const json::Raw& params) {
      context.notify("notifications/progress", params);
    };
    pool::Target target(route.server, std::string(context.session()), std::string(context.user()));
    rpc::Message message = passed.for_server(server_revision, asker_of(context), answers, state);
    if (large) co_await sleep_for(loop_, mcp::Slices::kPause);
    Task<Result<rpc::Message>> calling =
        pool_->call(std::move(target), std::move(message), std::move(options));
    const Result<rpc::Message> answer = co_await calling;
    if (!answer) {
      // When a server ends, many calls fail in one turn: what is said of each is written in a turn of its
      // own.
      co_await sleep_for(loop_, mcp::Slices::kPause);
      co_return failure_of(route.server, answer.error());
    }
    if (answer->is(rpc::Kind::error)) {
      Error error = answer->remote_error();
      if (error.detail().rpc_code == mcp::kUrlElicitationRequired) note_urls(route.server, context, error);
      co_return error;
    }
    const json::Raw result = answer->result();
    if (result.text().size() > mcp::Slices::kLargeMessage) co_await sleep_for(loop_, mcp::Slices::kPause);
    if (json::has_more_members(json::View(result), kMaxMembers))
      co_return refusal_of(rpc::kInternalError,
                           "server `" + route.server + "` answered with more than max_message_members (" +
                               std::to_string(kMaxMembers) + ")",
                           failure::resource_exhausted);
    const bool asks = mcp::is_modern(server_revision) && !mcp::is_modern(context.revision()) &&
                      json::View(result)["resultType"].as_string() == "input_required";
    if (!asks) {
      co_return result_for_client(result, method, server_revision, context.revision(), own_name());
    }
    const json::View view(result);
    state = view["requestState"].absent()
                ? json::Raw()
                : json::Raw::trusted(result.bytes().part(view["requestState"].text()));
    const json::View questions = view["inputRequests"];
    answers = json::Raw();
    if (questions.absent()) continue;
    Task<Result<json::Raw>> asking =
        answers_of(route.server, context, json::Raw::trusted(result.bytes().part(questions.text())));
    Result<json::Raw> gathered = co_await asking;
    if (!gathered) co_return gathered.error();
    answers = std::move(*gathered);
  }
  co_return refusal_of(
      rpc::kInternalError,
      "server `" + route.server + "` asked for input more than " + std::to_string(kMostRounds) + " times",
      failure::too_many_rounds);
}

// A call refused until the user has been to a URL: the server may tell when that is done.
void GatewayImpl::note_urls(const std::string& server, const mcp::Context& context, const Error& refusal) {
  json::View(refusal.detail().rpc_data)["elicitations"].each_element([&](json::View one) {
    if (const auto id = one["elicitationId"].as_string()) sent_to_url(server, *id, context.session());
    return true;
  });
}

// A modern server's questions, put to a legacy client as requests.
Task<Result<json::Raw>> GatewayImpl::answers_of(std::string server, mcp::Context context,
                                                json::Raw questions) {
  if (json::has_more_members(json::View(questions), kMaxMembers))
    co_return refusal_of(rpc::kInternalError,
                         "server `" + server + "` asks more than max_message_members (" +
                             std::to_string(kMaxMembers) + ") questions",
                         failure::resource_exhausted);
  std::vector<std::pair<std::string, json::View>> open;
  json::View(questions).each_member([&](std::string_view key, bool escaped, json::View question) {
    open.emplace_back(escaped ? json::unescape(key) : std::string(key), question);
    return true;
  });
  json::Writer answers;
  answers.begin_object();
  for (const auto& [key, question] : open) {
    const std::string method = question["method"].as_string().value_or("");
    const std::string_view capability = capability_for(method);
    if (capability.empty() || context.client_capabilities()[capability].absent()) {
      co_return refusal_of(
          rpc::kInternalError,
          "server `" + server + "` asks for `" + method + "`, which this client cannot be asked",
          failure::unsupported_by_client);
    }
    const json::View asked = question["params"];
    json::Raw params =
        asked.absent() ? json::Raw() : json::Raw::trusted(questions.bytes().part(asked.text()));
    Task<Result<json::Raw>> asking = context.ask_legacy(method, std::move(params));
    const Result<json::Raw> answer = co_await asking;
    if (!answer) co_return answer.error();
    answers.key(key).raw(*answer);
  }
  answers.end_object();
  co_return answers.finish();
}

Task<void> GatewayImpl::shutdown(std::chrono::milliseconds grace) {
  const auto keep = shared_from_this();
  stopping_ = true;
  // Of what is under way only what clients wait for is waited for.
  watches_->stop();
  for (auto& [name, known] : known_) {
    known.shared.lease.reset();
    known.retry.reset();
    for (const auto& [key, part] : known.own) part->lease.reset();
  }
  Task<void> stopping = pool_->shutdown(grace);
  co_await stopping;
}

}  // namespace fairlead::gateway
