// The modern half of a server: every request stands for itself.
#include "mcp/server_modern.hpp"

#include <algorithm>
#include <tuple>

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

Error unsupported_version(const std::string& requested) {
  json::Writer data;
  data.begin_object().key("supported").begin_array().string(to_string(kNewest)).end_array();
  data.key("requested").string(requested).end_object();
  return Error::rpc(kUnsupportedVersion, "Unsupported protocol version", data.text());
}

Error bad_envelope(std::string_view key, std::string_view what) {
  return rpc::invalid_params("_meta: " + std::string(key) + " " + std::string(what));
}

// Everything is judged from this request alone; nothing is remembered from an earlier one.
Result<std::shared_ptr<RequestState>> state_of(const Request& request, std::shared_ptr<const CallFacts> facts,
                                               std::shared_ptr<ClientLink> link) {
  const json::View capabilities = facts->client_capabilities;
  const json::View info = facts->client_info;
  const std::optional<std::string> version = facts->protocol_version.as_string();
  if (!version) return bad_envelope(kVersionKey, "is missing or not a string");
  if (!capabilities.is(json::Type::object))
    return bad_envelope(kCapabilitiesKey, "is missing or not an object");
  if (!info.absent() && !info.is(json::Type::object)) return bad_envelope(kClientInfoKey, "is not an object");
  const std::optional<Revision> revision = revision_named(*version);
  if (!revision || !is_modern(*revision)) return unsupported_version(*version);
  auto state = std::make_shared<RequestState>();
  if (!facts->log_level.absent()) {
    state->log_level = logging_level_named(facts->log_level.as_string().value_or(""));
    if (!state->log_level) return bad_envelope(kLogLevelKey, "is not a logging level");
  }
  state->revision = *revision;
  state->link = std::move(link);
  state->id = request.id();
  state->client_capabilities = part_of(request.message(), capabilities);
  state->client_info = part_of(request.message(), info);
  state->meta = part_of(request.message(), facts->meta);
  state->facts = std::move(facts);
  state->stop = request.stop();
  return state;
}

Answer discover(const ServerState& server, Revision revision) {
  ResultWriter result(server, revision);
  result.out().key("supportedVersions").begin_array().string(to_string(kNewest)).end_array();
  result.out().key("capabilities");
  write_capabilities(result.out(), server, revision);
  if (!server.instructions.empty()) result.out().key("instructions").string(server.instructions);
  result.cache_hint(server.cache_hint);
  return result.finish();
}

// What a filter may have.
json::Members filter_members(json::View filter) {
  return json::Members(filter, {"toolsListChanged", "promptsListChanged", "resourcesListChanged",
                                "resourceSubscriptions", "taskIds"});
}

// Takes from a filter which lists to tell of.
std::optional<Error> read_list_filter(const ServerState& server, const json::Members& filter,
                                      Subscription::Wanted& wanted) {
  const std::tuple<const char*, const char*, bool&> kinds[] = {
      {"toolsListChanged", "tools", wanted.tools},
      {"promptsListChanged", "prompts", wanted.prompts},
      {"resourcesListChanged", "resources", wanted.resources}};
  for (const auto& [member, capability, wants] : kinds) {
    const json::View value = filter[member];
    if (!value.absent() && !value.as_bool())
      return rpc::invalid_params(std::string(member) + " is not a boolean");
    wants = value.as_bool().value_or(false) && has_capability(server, capability);
  }
  return std::nullopt;
}

// The resources that a filter names, or one more than there may be. Pauses between parts of a long list.
Task<Result<std::set<std::string>>> read_uris(Loop& loop, json::View uris) {
  std::set<std::string> read;
  if (uris.absent()) co_return read;
  bool fits = uris.is(json::Type::array);
  if (fits) {
    Slices slices;
    json::ElementWalk walk(uris.text());
    while (fits && read.size() <= kMostUris && walk.next()) {
      std::optional<std::string> text = json::View(walk.value()).as_string(kMostUriBytes);
      fits = text.has_value();
      if (text) read.insert(std::move(*text));
      if (slices.due(walk.value().size())) co_await sleep_for(loop, Slices::kPause);
    }
  }
  if (!fits)
    co_return rpc::invalid_params("resourceSubscriptions is not an array of strings within max_uri_bytes (" +
                                  std::to_string(kMostUriBytes) + ")");
  co_return read;
}

// The backend's part in a subscription. What it cannot promise is left out.
Task<std::vector<std::shared_ptr<void>>> subscribe_at_backend(std::shared_ptr<const ModernServer> modern,
                                                              std::shared_ptr<Subscription> subscription,
                                                              std::shared_ptr<RequestState> state) {
  std::vector<std::shared_ptr<void>> kept;
  const std::set<std::string>& uris = subscription->wanted().uris;
  Slices slices;
  for (auto at = uris.begin(); at != uris.end();) {
    const std::string uri = *at++;  // leave_out() may remove it
    if (slices.due(uri.size())) co_await sleep_for(state->link->loop(), Slices::kPause);
    if (state->stop.stop_requested()) break;
    BackendSubscription wish(uri, std::string(state->link->session()), state->link->principal());
    wish.stop = state->stop;
    wish.updated = [weak = std::weak_ptr(subscription)](const std::string& changed) {
      if (const auto told = weak.lock()) told->part_updated(changed);
    };
    Task<Result<std::shared_ptr<void>>> subscribing = modern->server->backend->subscribe(std::move(wish));
    Result<std::shared_ptr<void>> made = co_await subscribing;
    if (made) {
      kept.push_back(std::move(*made));
    } else {
      modern->log.info("cannot subscribe", {{"uri", uri}, {"reason", made.error().message()}});
      subscription->leave_out(uri);
    }
  }
  co_return kept;
}

// Ends the backend's part in a subscription. Pauses, since each end may cost a request to a server.
Task<void> unsubscribe_at_backend(Loop& loop, std::vector<std::shared_ptr<void>> kept) {
  Slices slices;
  while (!kept.empty()) {
    kept.pop_back();
    if (slices.due(0)) co_await sleep_for(loop, Slices::kPause);
  }
}

// Stays under way until the client cancels it or goes away.
Task<Answer> listen(std::shared_ptr<const ModernServer> modern, Request request,
                    std::shared_ptr<RequestState> state) {
  const json::View filter = request.message().param("notifications");
  if (!filter.is(json::Type::object))
    co_return rpc::invalid_params("notifications is missing or not an object");
  Loop& loop = state->link->loop();
  if (filter.text().size() > Slices::kLargeMessage) co_await sleep_for(loop, Slices::kPause);
  const json::Members members = filter_members(filter);
  Subscription::Wanted wanted;
  if (const std::optional<Error> problem = read_list_filter(*modern->server, members, wanted))
    co_return *problem;
  Task<Result<std::set<std::string>>> reading = read_uris(loop, members["resourceSubscriptions"]);
  Result<std::set<std::string>> uris = co_await reading;
  if (!uris) co_return uris.error();
  if (has_capability(*modern->server, "resources")) wanted.uris = std::move(*uris);
  Task<Result<std::set<std::string>>> filtering = read_task_filter(modern->server, state, members["taskIds"]);
  Result<std::set<std::string>> tasks = co_await filtering;
  if (!tasks) co_return tasks.error();
  wanted.tasks = std::move(*tasks);
  if (const std::optional<Error> problem = modern->subscriptions->refusal(wanted)) co_return *problem;
  const Result<SubscriptionShares::Share> share = modern->subscriptions->shares().take(
      *state->link->principal(), std::max<std::size_t>(wanted.uris.size(), 1));
  if (!share) co_return share.error();
  const std::string id(request.id());
  auto subscription = std::make_shared<Subscription>(state->link, id, std::move(wanted), modern->log);
  const Subscriptions::Place place(modern->subscriptions, subscription);
  std::vector<std::shared_ptr<void>> kept;
  if (modern->server->backend) {
    Task<std::vector<std::shared_ptr<void>>> subscribing = subscribe_at_backend(modern, subscription, state);
    kept = co_await subscribing;
  }
  Task<void> acknowledging = subscription->acknowledge(state->stop);
  co_await acknowledging;
  if (!subscription->wanted().nothing() && !state->stop.stop_requested()) {
    modern->server->listen(subscription);
    const std::stop_callback on_stop(state->stop, [subscription] { subscription->end(); });
    // What a task has come to by now, since nothing more may come of it.
    Slices slices;
    for (const std::string& task : subscription->wanted().tasks) {
      if (state->stop.stop_requested()) break;
      const json::Raw now = detailed_task(*modern->server, *state, task);
      if (!now.absent()) subscription->task_changed(task, now);
      if (slices.due(now.text().size())) co_await sleep_for(loop, Slices::kPause);
    }
    const bool stopped = co_await subscription->ended().wait(loop, Clock::duration::max());
    static_cast<void>(stopped);
  }
  Task<void> unsubscribing = unsubscribe_at_backend(loop, std::move(kept));
  co_await unsubscribing;
  json::Writer meta;
  meta.begin_object().key(kSubscriptionKey).raw(id).end_object();
  co_return ResultWriter(*modern->server, state->revision).finish(meta.finish());
}

}  // namespace

Task<Answer> serve_modern(std::shared_ptr<const ModernServer> modern, Request request,
                          std::shared_ptr<const CallFacts> facts, std::shared_ptr<ClientLink> link) {
  if (request.is_notification()) return ready_task<Answer>(json::Raw::null());
  const std::optional<Error> problem = problem_of(*facts);
  if (problem) return ready_task<Answer>(*problem);
  if (request.id() == "null")
    return ready_task<Answer>(rpc::invalid_request("Invalid Request: a null id is not allowed"));
  Result<std::shared_ptr<RequestState>> state = state_of(request, std::move(facts), std::move(link));
  if (!state) return ready_task<Answer>(state.error());
  const ServerState& server = *modern->server;
  const MethodInfo* method = find_method(request.method(), (*state)->revision);
  const bool served = method && method->sender != Sender::server && !method->notification &&
                      has_extension(server, method->extension) && has_capability(server, method->capability);
  if (!served) return ready_task<Answer>(rpc::method_not_found(request.method()));
  if (method->name == "server/discover") return ready_task(discover(server, (*state)->revision));
  if (method->name == "subscriptions/listen")
    return listen(std::move(modern), std::move(request), std::move(*state));
  FeatureCall call{modern->server,   std::move(*state), std::string(request.method()),
                   request.params(), modern->log,       request.message()};
  return dispatch(std::move(call), *method);
}

}  // namespace fairlead::mcp
