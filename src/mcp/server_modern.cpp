#include "mcp/server_modern.hpp"

#include <algorithm>
#include <tuple>

#include "fairlead/base/block_cache.hpp"
#include "fairlead/loop/timer.hpp"
#include "fairlead/rpc/codes.hpp"
#include "json/members.hpp"
#include "json/walk.hpp"
#include "loop/slices.hpp"
#include "mcp/dispatch.hpp"
#include "mcp/server_tasks.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::mcp {

namespace {

Error unsupported_version_error(const std::string& requested) {
  json::Writer data;
  data.begin_object().key("supported").begin_array().string(to_string(kNewestRevision)).end_array();
  data.key("requested").string(requested).end_object();
  return Error::rpc(kUnsupportedVersion, "Unsupported protocol version", data.text());
}

Error envelope_error(std::string_view key, std::string_view problem) {
  return rpc::invalid_params("_meta: " + std::string(key) + " " + std::string(problem));
}

// Returns the revision that `version` names; nullopt if it is not a string or names none.
std::optional<Revision> read_revision(json::View version) {
  if (!version.is(json::Type::string)) return std::nullopt;
  const std::string_view text = version.text();
  // The usual spelling has no escapes.
  if (const auto revision = revision_named(text.substr(1, text.size() - 2))) return revision;
  return revision_named(version.as_string().value_or(""));
}

// Makes the request state from the envelope of this request alone; it does not depend on earlier requests.
Result<std::shared_ptr<RequestState>> make_request_state(const rpc::Message& request,
                                                         const std::stop_token& stop,
                                                         std::shared_ptr<const CallFacts> facts,
                                                         std::shared_ptr<ClientLink> link) {
  const json::View capabilities = facts->client_capabilities;
  const json::View info = facts->client_info;
  const json::View version = facts->protocol_version;
  if (!version.is(json::Type::string)) return envelope_error(kVersionKey, "is missing or not a string");
  if (!capabilities.is(json::Type::object))
    return envelope_error(kCapabilitiesKey, "is missing or not an object");
  if (!info.absent() && !info.is(json::Type::object))
    return envelope_error(kClientInfoKey, "is not an object");
  const std::optional<Revision> revision = read_revision(version);
  if (!revision || !is_modern(*revision)) return unsupported_version_error(version.as_string().value_or(""));
  auto state = make_cached<RequestState>(request.id());
  if (!facts->log_level.absent()) {
    state->log_level = logging_level_named(facts->log_level.as_string().value_or(""));
    if (!state->log_level) return envelope_error(kLogLevelKey, "is not a logging level");
  }
  state->revision = *revision;
  state->link = std::move(link);
  state->client_capabilities = part_of(request, capabilities);
  state->client_info = part_of(request, info);
  state->meta = part_of(request, facts->meta);
  state->facts = std::move(facts);
  state->stop = stop;
  return state;
}

Answer handle_discover(const ServerState& server, Revision revision) {
  ResultWriter result(server, revision);
  result.out().key("supportedVersions").begin_array().string(to_string(kNewestRevision)).end_array();
  result.out().key("capabilities");
  write_capabilities(result.out(), server, revision);
  if (!server.instructions.empty()) result.out().key("instructions").string(server.instructions);
  result.write_cache_hint(server.cache_hint);
  return result.finish();
}

// Returns the known members of the `notifications` filter.
json::Members filter_members(json::View filter) {
  return json::Members(filter, {"toolsListChanged", "promptsListChanged", "resourcesListChanged",
                                "resourceSubscriptions", "taskIds"});
}

// Reads which list changes the client subscribes to. Lists that the server does not have are omitted from
// `filter`.
std::optional<Error> read_list_filter(const ServerState& server, const json::Members& members,
                                      Subscription::Filter& filter) {
  const std::tuple<const char*, const char*, bool&> kinds[] = {
      {"toolsListChanged", "tools", filter.tools},
      {"promptsListChanged", "prompts", filter.prompts},
      {"resourcesListChanged", "resources", filter.resources}};
  for (const auto& [member, capability, included] : kinds) {
    const json::View value = members[member];
    if (!value.absent() && !value.as_bool())
      return rpc::invalid_params(std::string(member) + " is not a boolean");
    included = value.as_bool().value_or(false) && has_capability(server, capability);
  }
  return std::nullopt;
}

// Reads the URIs of the filter in slices. Stops after kMaxSubscribedUris + 1 URIs, because the caller rejects
// that many.
Task<Result<std::set<std::string>>> read_uris(Loop& loop, json::View uris) {
  std::set<std::string> read;
  if (uris.absent()) co_return read;
  bool valid = uris.is(json::Type::array);
  if (valid) {
    Slices slices;
    json::ElementWalk walk(uris.text());
    while (valid && read.size() <= kMaxSubscribedUris && walk.next()) {
      std::optional<std::string> text = json::View(walk.value()).as_string(kMaxSubscribedUriBytes);
      valid = text.has_value();
      if (text) read.insert(std::move(*text));
      if (slices.due(walk.value().size())) co_await sleep_for(loop, Slices::kPause);
    }
  }
  if (!valid)
    co_return rpc::invalid_params("resourceSubscriptions is not an array of strings within max_uri_bytes (" +
                                  std::to_string(kMaxSubscribedUriBytes) + ")");
  co_return read;
}

// Subscribes to the resources of the filter at the backend and returns the handles. A resource that the
// backend rejects is removed from the filter.
Task<std::vector<std::shared_ptr<void>>> subscribe_at_backend(std::shared_ptr<const ModernServer> modern,
                                                              std::shared_ptr<Subscription> subscription,
                                                              std::shared_ptr<RequestState> state) {
  std::vector<std::shared_ptr<void>> handles;
  const std::set<std::string>& uris = subscription->filter().uris;
  Slices slices;
  for (auto at = uris.begin(); at != uris.end();) {
    const std::string uri = *at++;  // advances first, since exclude_uri() may erase the element
    if (slices.due(uri.size())) co_await sleep_for(state->link->loop(), Slices::kPause);
    if (state->stop.stop_requested()) break;
    BackendSubscription request(uri, std::string(state->link->session()), state->link->principal());
    request.stop = state->stop;
    request.on_updated = [weak = std::weak_ptr(subscription)](const std::string& changed) {
      if (const auto listener = weak.lock()) listener->post_resource_updated(changed);
    };
    Result<std::shared_ptr<void>> handle = co_await modern->server->backend->subscribe(std::move(request));
    if (handle) {
      handles.push_back(std::move(*handle));
    } else {
      modern->log.info("cannot subscribe", {{"uri", uri}, {"reason", handle.error().message()}});
      subscription->exclude_uri(uri);
    }
  }
  co_return handles;
}

// Releases the handles in slices, since the release of a handle may cause a request to a server.
Task<void> unsubscribe_at_backend(Loop& loop, std::vector<std::shared_ptr<void>> handles) {
  Slices slices;
  while (!handles.empty()) {
    handles.pop_back();
    if (slices.due(0)) co_await sleep_for(loop, Slices::kPause);
  }
}

// Serves subscriptions/listen. The request stays in progress until the client cancels it or disconnects, or
// the server shuts down.
Task<Answer> handle_listen(std::shared_ptr<const ModernServer> modern, Request request,
                           std::shared_ptr<RequestState> state) {
  const json::View notifications = request.message().param("notifications");
  if (!notifications.is(json::Type::object))
    co_return rpc::invalid_params("notifications is missing or not an object");
  Loop& loop = state->link->loop();
  if (notifications.text().size() > Slices::kLargeMessageBytes) co_await sleep_for(loop, Slices::kPause);
  const json::Members members = filter_members(notifications);
  Subscription::Filter filter;
  if (const std::optional<Error> problem = read_list_filter(*modern->server, members, filter))
    co_return *problem;
  Task<Result<std::set<std::string>>> reading = read_uris(loop, members["resourceSubscriptions"]);
  Result<std::set<std::string>> uris = co_await reading;
  if (!uris) co_return uris.error();
  if (has_capability(*modern->server, "resources")) filter.uris = std::move(*uris);
  Task<Result<std::set<std::string>>> filtering = read_task_filter(modern->server, state, members["taskIds"]);
  Result<std::set<std::string>> task_ids = co_await filtering;
  if (!task_ids) co_return task_ids.error();
  filter.task_ids = std::move(*task_ids);
  if (const std::optional<Error> problem = modern->subscriptions->check_limits(filter)) co_return *problem;
  const Result<SubscriptionQuota::Charge> charge = modern->subscriptions->quota().charge(
      *state->link->principal(), std::max<std::size_t>(filter.uris.size(), 1));
  if (!charge) co_return charge.error();
  const std::string id(request.id());
  auto subscription = std::make_shared<Subscription>(state->link, id, std::move(filter), modern->log);
  const SubscriptionRegistry::Registration registration(modern->subscriptions, subscription);
  std::vector<std::shared_ptr<void>> handles;
  if (modern->server->backend) {
    handles = co_await subscribe_at_backend(modern, subscription, state);
  }
  co_await subscription->acknowledge(state->stop);
  if (!subscription->filter().empty() && !state->stop.stop_requested()) {
    modern->server->add_listener(subscription);
    const std::stop_callback on_stop(state->stop, [subscription] { subscription->end(); });
    // Sends the present state of each task, since the task may already have ended and then does not change
    // again.
    Slices slices;
    for (const std::string& task : subscription->filter().task_ids) {
      if (state->stop.stop_requested()) break;
      const json::Raw now = find_detailed_task_json(*modern->server, *state, task);
      if (!now.absent()) subscription->on_task_changed(task, now);
      if (slices.due(now.text().size())) co_await sleep_for(loop, Slices::kPause);
    }
    co_await subscription->ended().wait(loop);
  }
  co_await unsubscribe_at_backend(loop, std::move(handles));
  json::Writer meta;
  meta.begin_object().key(kSubscriptionKey).raw(id).end_object();
  co_return ResultWriter(*modern->server, state->revision).finish(meta.finish());
}

}  // namespace

bool serve_modern_directly(const ModernServer& modern, const rpc::Message& message,
                           const std::stop_token& stop, std::shared_ptr<const CallFacts> facts,
                           std::shared_ptr<ClientLink> link, const std::shared_ptr<Responder>& responder) {
  if (check_request_params(*facts)) return false;
  Result<std::shared_ptr<RequestState>> state = make_request_state(message, stop, facts, std::move(link));
  if (!state) return false;
  return modern.server->backend->serve_directly({message, std::move(facts), Context(std::move(*state))},
                                                responder);
}

Task<Answer> serve_modern(std::shared_ptr<const ModernServer> modern, Request request,
                          std::shared_ptr<const CallFacts> facts, std::shared_ptr<ClientLink> link) {
  if (request.is_notification()) return ready_task<Answer>(json::Raw::null());
  const std::optional<Error> problem = check_request_params(*facts);
  if (problem) return ready_task<Answer>(*problem);
  if (request.id() == "null")
    return ready_task<Answer>(rpc::invalid_request("Invalid Request: a null id is not allowed"));
  Result<std::shared_ptr<RequestState>> state =
      make_request_state(request.message(), request.stop(), std::move(facts), std::move(link));
  if (!state) return ready_task<Answer>(state.error());
  const ServerState& server = *modern->server;
  const MethodInfo* method = find_method(request.method(), (*state)->revision);
  const bool served = method && method->sender != Sender::server && !method->is_notification &&
                      has_extension(server, method->extension) && has_capability(server, method->capability);
  if (!served) return ready_task<Answer>(rpc::method_not_found(request.method()));
  if (method->name == "server/discover") return ready_task(handle_discover(server, (*state)->revision));
  if (method->name == "subscriptions/listen")
    return handle_listen(std::move(modern), std::move(request), std::move(*state));
  FeatureRequest feature_request{modern->server,   std::move(*state), std::string(request.method()),
                                 request.params(), modern->log,       request.message()};
  return dispatch(std::move(feature_request), *method);
}

}  // namespace fairlead::mcp
