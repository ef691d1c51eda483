#include "mcp/server_session.hpp"

#include "fairlead/rpc/codes.hpp"
#include "mcp/dialect.hpp"

namespace fairlead::mcp {

namespace {

Error unknown_method(const Request& request) {
  return rpc::method_not_found(request.method());
}

json::Raw part_of(const Request& request, json::View view) {
  return view.absent() ? json::Raw() : json::Raw::trusted(request.message().frame().part(view.text()));
}

// What is wrong with the parts that all requests share.
std::optional<Error> problem_of(json::View params, json::View meta) {
  if (!params.absent() && !params.is(json::Type::object))
    return rpc::invalid_params("params is not an object");
  if (!meta.absent() && !meta.is(json::Type::object)) return rpc::invalid_params("_meta is not an object");
  const json::View token = meta["progressToken"];
  const bool fits =
      token.absent() || token.is(json::Type::null) || token.is(json::Type::string) || token.as_int();
  if (!fits) return rpc::invalid_params("progressToken is neither a string nor an integer");
  return std::nullopt;
}

bool is_only_modern(std::string_view method) {
  return find_method(method, kNewest) && !find_method(method, kNewestLegacy);
}

// Legacy clients are told of changes as soon as they are there; what they need not know about is the era.
std::string_view changed_method(ListKind kind) {
  switch (kind) {
    case ListKind::tools: return "notifications/tools/list_changed";
    case ListKind::prompts: return "notifications/prompts/list_changed";
    case ListKind::resources:
    case ListKind::templates: break;
  }
  return "notifications/resources/list_changed";
}

}  // namespace

std::shared_ptr<Peer> ServerSession::start(std::shared_ptr<ServerState> server,
                                           std::shared_ptr<Connection> connection, Limits limits, Log log) {
  std::shared_ptr<ServerSession> session(new ServerSession(server, connection->loop(), log));
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
  options.on_ending = [session] { session->end_subscriptions(); };
  auto peer = Peer::start(std::move(connection), std::move(methods), std::move(options));
  session->peer_ = peer;
  server->listen(session);
  return peer;
}

// ---- requests -------------------------------------------------------------------------------------------

// A request that says which revision it speaks is modern; every other one belongs to the legacy session.
Task<Answer> ServerSession::handle(Request request) {
  const json::View meta = request.args()["_meta"];
  if (!request.is_notification()) {
    if (const std::optional<Error> problem = problem_of(request.args(), meta)) co_return *problem;
  }
  const bool modern = !meta["io.modelcontextprotocol/protocolVersion"].absent() ||
                      !meta["io.modelcontextprotocol/clientCapabilities"].absent() ||
                      (!legacy_ && is_only_modern(request.method()));
  Task<Answer> handling = modern ? handle_modern(request, meta) : handle_legacy(request);
  Answer answer = co_await handling;
  co_return answer;
}

Task<Answer> ServerSession::dispatch(FeatureCall call, const MethodInfo& method) {
  if (method.name == "tools/list") co_return list(call, ListKind::tools);
  if (method.name == "resources/list") co_return list(call, ListKind::resources);
  if (method.name == "resources/templates/list") co_return list(call, ListKind::templates);
  if (method.name == "prompts/list") co_return list(call, ListKind::prompts);
  if (method.name == "completion/complete") co_return complete(call);
  const std::string_view name = method.name;
  Task<Answer> running = name == "tools/call"       ? call_tool(std::move(call))
                         : name == "resources/read" ? read_resource(std::move(call))
                                                    : get_prompt(std::move(call));
  Answer answer = co_await running;
  co_return answer;
}

// What is offered decides what is advertised, and only what is advertised is served.
bool ServerSession::has_capability(std::string_view capability) const {
  const auto catalogue = server_->catalogue();
  if (capability == "tools") return catalogue->size(ListKind::tools) > 0;
  if (capability == "prompts") return catalogue->size(ListKind::prompts) > 0;
  if (capability == "resources") {
    return catalogue->size(ListKind::resources) + catalogue->size(ListKind::templates) > 0;
  }
  return capability == "completions" || capability == "logging" || capability.empty();
}

void ServerSession::write_capabilities(json::Writer& out, Revision revision) const {
  out.begin_object();
  if (has_capability("tools")) out.key("tools").begin_object().key("listChanged").boolean(true).end_object();
  if (has_capability("prompts"))
    out.key("prompts").begin_object().key("listChanged").boolean(true).end_object();
  if (has_capability("resources")) {
    out.key("resources")
        .begin_object()
        .key("subscribe")
        .boolean(true)
        .key("listChanged")
        .boolean(true)
        .end_object();
  }
  out.key("logging").begin_object().end_object();
  if (revision >= Revision::r2025_03_26) out.key("completions").begin_object().end_object();
  out.end_object();
}

// ---- legacy era -----------------------------------------------------------------------------------------

Task<Answer> ServerSession::handle_legacy(Request request) {
  const std::string_view name = request.method();
  if (request.id() == "null") co_return rpc::invalid_request("Invalid Request: a null id is not allowed");
  if (name == "initialize") co_return initialize(request);
  if (name == "ping") co_return json::Raw::trusted(Bytes::constant("{}"), true);
  const Revision revision = legacy_ ? legacy_->revision : kNewestLegacy;
  const MethodInfo* method = find_method(name, revision);
  if (request.is_notification()) co_return json::Raw::null();
  if (!method || method->sender == Sender::server || method->notification ||
      !has_capability(method->capability)) {
    co_return unknown_method(request);
  }
  if (!legacy_) co_return rpc::invalid_request("Invalid Request: initialize comes first");
  if (name == "logging/setLevel") co_return set_level(request.args());
  if (name == "resources/subscribe") co_return subscribe(request.args(), true);
  if (name == "resources/unsubscribe") co_return subscribe(request.args(), false);
  if (method->capability == "tasks") co_return unknown_method(request);

  auto state = std::make_shared<RequestState>();
  state->revision = legacy_->revision;
  state->link = shared_from_this();
  state->id = request.id();
  state->client_capabilities = legacy_->capabilities;
  state->client_info = legacy_->client_info;
  state->meta = part_of(request, request.args()["_meta"]);
  state->log_level = legacy_->log_level;
  state->stop = request.stop();
  FeatureCall call{server_, std::move(state), std::string(name), request.params(), log_};
  Task<Answer> dispatching = dispatch(std::move(call), *method);
  Answer answer = co_await dispatching;
  co_return answer;
}

Answer ServerSession::initialize(const Request& request) {
  const json::View params = request.args();
  const std::optional<std::string> asked = params["protocolVersion"].as_string();
  if (!asked) return rpc::invalid_params("protocolVersion is not a string");
  if (!params["capabilities"].is(json::Type::object))
    return rpc::invalid_params("capabilities is not an object");
  const json::View info = params["clientInfo"];
  if (!info.absent() && !info.is(json::Type::object))
    return rpc::invalid_params("clientInfo is not an object");
  // The two lists never mix: a modern version is not negotiated here.
  const std::optional<Revision> known = revision_named(*asked);
  const Revision revision = known && !is_modern(*known) ? *known : kNewestLegacy;
  legacy_ = Legacy{.revision = revision,
                   .capabilities = part_of(request, params["capabilities"]),
                   .client_info = part_of(request, info),
                   .log_level = LoggingLevel::debug,
                   .subscriptions = {}};
  json::Writer out;
  out.begin_object().key("protocolVersion").string(to_string(revision)).key("capabilities");
  write_capabilities(out, revision);
  out.key("serverInfo");
  write(out, server_->info, revision);
  if (!server_->instructions.empty()) out.key("instructions").string(server_->instructions);
  out.end_object();
  return out.finish();
}

Answer ServerSession::set_level(json::View params) {
  const std::optional<LoggingLevel> level = logging_level_named(params["level"].as_string().value_or(""));
  if (!level) return rpc::invalid_params("level is not a logging level");
  legacy_->log_level = *level;
  return json::Raw::trusted(Bytes::constant("{}"), true);
}

Answer ServerSession::subscribe(json::View params, bool on) {
  const std::optional<std::string> uri = params["uri"].as_string();
  if (!uri) return rpc::invalid_params("uri is not a string");
  if (uri->size() > kMostUriBytes) return rpc::invalid_params("uri is longer than 8192 bytes");
  if (!on) {
    legacy_->subscriptions.erase(*uri);
  } else if (legacy_->subscriptions.size() >= kMostUris && !legacy_->subscriptions.contains(*uri)) {
    return Error::rpc(rpc::kInternalError, "Subscription limit reached (10000 resources)");
  } else {
    legacy_->subscriptions.insert(*uri);
  }
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

void ServerSession::list_changed(ListKind kind) {
  loop_.post([self = shared_from_this(), kind] { self->tell_list_changed(kind); });
}

void ServerSession::resource_updated(const std::string& uri) {
  loop_.post([self = shared_from_this(), uri] { self->tell_updated(uri); });
}

void ServerSession::tell_list_changed(ListKind kind) {
  if (legacy_) notify(changed_method(kind), json::Raw(), {});
  for (const auto& [id, wanted] : listening_) {
    const bool wants = kind == ListKind::tools     ? wanted.tools
                       : kind == ListKind::prompts ? wanted.prompts
                                                   : wanted.resources;
    if (wants) notify_listener(id, changed_method(kind));
  }
}

void ServerSession::tell_updated(const std::string& uri) {
  if (legacy_ && legacy_->subscriptions.contains(uri)) {
    json::Writer params;
    params.begin_object().key("uri").string(uri).end_object();
    notify("notifications/resources/updated", params.finish(), {});
  }
  for (const auto& [id, wanted] : listening_) {
    if (wanted.uris.contains(uri)) notify_listener(id, "notifications/resources/updated", uri);
  }
}

}  // namespace fairlead::mcp
