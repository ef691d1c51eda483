// The modern half of a server's session: every request stands for itself.
#include <tuple>

#include "fairlead/loop/event.hpp"
#include "fairlead/rpc/codes.hpp"
#include "mcp/server_session.hpp"

namespace fairlead::mcp {

namespace {

constexpr std::int64_t kUnsupportedVersion = -32022;
constexpr std::size_t kMostSubscriptions = 1024;
constexpr std::string_view kVersionKey = "io.modelcontextprotocol/protocolVersion";
constexpr std::string_view kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
constexpr std::string_view kClientInfoKey = "io.modelcontextprotocol/clientInfo";
constexpr std::string_view kLogLevelKey = "io.modelcontextprotocol/logLevel";
constexpr std::string_view kSubscriptionKey = "io.modelcontextprotocol/subscriptionId";

Error unsupported_version(const std::string& requested) {
  json::Writer data;
  data.begin_object().key("supported").begin_array().string(to_string(kNewest)).end_array();
  data.key("requested").string(requested).end_object();
  return Error::rpc(kUnsupportedVersion, "Unsupported protocol version", data.text());
}

Error bad_envelope(std::string_view key, std::string_view what) {
  return rpc::invalid_params("_meta: " + std::string(key) + " " + std::string(what));
}

json::Raw part_of(const Request& request, json::View view) {
  return view.absent() ? json::Raw() : json::Raw::trusted(request.message().frame().part(view.text()));
}

}  // namespace

Task<Answer> ServerSession::handle_modern(Request request, json::View meta) {
  if (request.is_notification()) co_return json::Raw::null();
  if (request.id() == "null") co_return rpc::invalid_request("Invalid Request: a null id is not allowed");
  const Result<std::shared_ptr<RequestState>> state = modern_state(request, meta);
  if (!state) co_return state.error();
  const MethodInfo* method = find_method(request.method(), (*state)->revision);
  const bool served = method && method->sender != Sender::server && !method->notification &&
                      method->extension.empty() && has_capability(method->capability);
  if (!served) co_return rpc::method_not_found(request.method());
  if (method->name == "server/discover") co_return discover((*state)->revision);
  if (method->name == "subscriptions/listen") {
    Task<Answer> listening = listen(request, *state);
    Answer answer = co_await listening;
    co_return answer;
  }
  FeatureCall call{server_, *state, std::string(request.method()), request.params(), log_};
  Task<Answer> dispatching = dispatch(std::move(call), *method);
  Answer answer = co_await dispatching;
  co_return answer;
}

// Everything is judged from this request alone; nothing is remembered from an earlier one.
Result<std::shared_ptr<RequestState>> ServerSession::modern_state(const Request& request,
                                                                  json::View meta) const {
  const std::optional<std::string> version = meta[kVersionKey].as_string();
  if (!version) return bad_envelope(kVersionKey, "is missing or not a string");
  if (!meta[kCapabilitiesKey].is(json::Type::object))
    return bad_envelope(kCapabilitiesKey, "is missing or not an object");
  const json::View info = meta[kClientInfoKey];
  if (!info.absent() && !info.is(json::Type::object)) return bad_envelope(kClientInfoKey, "is not an object");
  const std::optional<Revision> revision = revision_named(*version);
  if (!revision || !is_modern(*revision)) return unsupported_version(*version);
  auto state = std::make_shared<RequestState>();
  const json::View level = meta[kLogLevelKey];
  if (!level.absent()) {
    state->log_level = logging_level_named(level.as_string().value_or(""));
    if (!state->log_level) return bad_envelope(kLogLevelKey, "is not a logging level");
  }
  state->revision = *revision;
  state->link = std::const_pointer_cast<ServerSession>(shared_from_this());
  state->id = request.id();
  state->client_capabilities = part_of(request, meta[kCapabilitiesKey]);
  state->client_info = part_of(request, info);
  state->meta = part_of(request, meta);
  state->stop = request.stop();
  return state;
}

Answer ServerSession::discover(Revision revision) const {
  ResultWriter result(*server_, revision);
  result.out().key("supportedVersions").begin_array().string(to_string(kNewest)).end_array();
  result.out().key("capabilities");
  write_capabilities(result.out(), revision);
  if (!server_->instructions.empty()) result.out().key("instructions").string(server_->instructions);
  result.cache_hint(server_->cache_hint);
  return result.finish();
}

// ---- subscriptions --------------------------------------------------------------------------------------

// Takes from a filter what there is to hear of here.
std::optional<Error> ServerSession::read_filter(json::View filter, Listening& wanted) const {
  const std::tuple<const char*, const char*, bool&> kinds[] = {
      {"toolsListChanged", "tools", wanted.tools},
      {"promptsListChanged", "prompts", wanted.prompts},
      {"resourcesListChanged", "resources", wanted.resources}};
  for (const auto& [member, capability, wants] : kinds) {
    const json::View value = filter[member];
    if (!value.absent() && !value.as_bool())
      return rpc::invalid_params(std::string(member) + " is not a boolean");
    wants = value.as_bool().value_or(false) && has_capability(capability);
  }
  const json::View uris = filter["resourceSubscriptions"];
  bool fits = uris.absent() || uris.is(json::Type::array);
  uris.each_element([&](json::View uri) {
    std::optional<std::string> text = uri.as_string();
    fits = text && text->size() <= kMostUriBytes;
    if (fits) wanted.uris.insert(std::move(*text));
    return fits;
  });
  if (!fits)
    return rpc::invalid_params("resourceSubscriptions is not an array of strings of at most 8192 bytes");
  if (!has_capability("resources")) wanted.uris.clear();
  std::size_t in_all = wanted.uris.size();
  for (const auto& [id, other] : listening_) in_all += other.uris.size();
  if (in_all > kMostUris)
    return Error::rpc(rpc::kInternalError, "Subscription limit reached (10000 resources)");
  return std::nullopt;
}

// Stays under way until the client cancels it or goes away.
Task<Answer> ServerSession::listen(Request request, std::shared_ptr<RequestState> state) {
  const json::View filter = request.args()["notifications"];
  if (!filter.is(json::Type::object))
    co_return rpc::invalid_params("notifications is missing or not an object");
  if (listening_.size() >= kMostSubscriptions) {
    co_return Error::rpc(rpc::kInternalError, "Subscription limit reached (1024 on one connection)");
  }
  Listening wanted;
  if (const std::optional<Error> problem = read_filter(filter, wanted)) co_return *problem;
  const std::string id(request.id());
  acknowledge(id, wanted);
  if (!wanted.nothing()) {
    Event ended = wanted.ended;
    listening_[id] = wanted;
    const std::stop_callback on_stop(state->stop, [this, ended]() mutable {
      // May run inside whatever asked to stop.
      loop_.post([ended]() mutable { ended.set(); });
    });
    const bool stopped = co_await ended.wait(loop_, Clock::duration::max());
    static_cast<void>(stopped);
    listening_.erase(id);
  }
  json::Writer meta;
  meta.begin_object().key(kSubscriptionKey).raw(id).end_object();
  co_return ResultWriter(*server_, state->revision).finish(meta.finish());
}

void ServerSession::end_subscriptions() {
  for (const auto& [id, one] : listening_) {
    // Each ends by itself, answering as it does; that takes it out of the map we are walking.
    loop_.post([ended = one.ended]() mutable { ended.set(); });
  }
}

void ServerSession::acknowledge(const std::string& id, const Listening& wanted) {
  json::Writer params;
  params.begin_object().key("notifications").begin_object();
  if (wanted.tools) params.key("toolsListChanged").boolean(true);
  if (wanted.prompts) params.key("promptsListChanged").boolean(true);
  if (wanted.resources) params.key("resourcesListChanged").boolean(true);
  if (!wanted.uris.empty()) {
    params.key("resourceSubscriptions").begin_array();
    for (const std::string& uri : wanted.uris) params.string(uri);
    params.end_array();
  }
  params.end_object().key("_meta").begin_object().key(kSubscriptionKey).raw(id).end_object().end_object();
  notify("notifications/subscriptions/acknowledged", params.finish(), id);
}

void ServerSession::notify_listener(const std::string& id, std::string_view method, std::string_view uri) {
  json::Writer params;
  params.begin_object();
  if (!uri.empty()) params.key("uri").string(uri);
  params.key("_meta").begin_object().key(kSubscriptionKey).raw(id).end_object().end_object();
  notify(method, params.finish(), id);
}

}  // namespace fairlead::mcp
