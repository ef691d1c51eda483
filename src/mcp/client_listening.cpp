// How a client hears of changes: in the legacy era list changes come unasked and resources are subscribed to
// one by one; in the modern era there is one request for all of it, which stays under way for as long as it
// is wanted.
#include "fairlead/loop/event.hpp"
#include "json/members.hpp"
#include "mcp/client_session.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::mcp {

namespace {

// Before a subscription that was ended is made again; twice that each time it fails.
constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestPause{60'000};

json::Raw filter_params(const ListenFilter& filter) {
  json::Writer out;
  out.begin_object().key("notifications").begin_object();
  if (filter.tools) out.key("toolsListChanged").boolean(true);
  if (filter.prompts) out.key("promptsListChanged").boolean(true);
  if (filter.resources) out.key("resourcesListChanged").boolean(true);
  if (!filter.uris.empty()) {
    out.key("resourceSubscriptions").begin_array();
    for (const std::string& uri : filter.uris) out.string(uri);
    out.end_array();
  }
  out.end_object().end_object();
  return out.finish();
}

}  // namespace

// A modern subscription. It begins to count with its acknowledgement.
struct ClientSession::Subscription {
  ListenFilter filter;
  std::uint64_t number = 0;  // its key in subscriptions_; 0 as long as it has none
  std::string request_id;
  bool acknowledged = false;
  bool honoured = false;  // anything of what was asked for
  std::optional<Error> failed;
  Event settled;
  std::stop_source stop;
  std::vector<std::string> uris;  // legacy era: what it subscribed to
};

Task<Result<std::uint64_t>> ClientSession::listen(ListenFilter filter) {
  const auto keep = self();
  if (away()) {
    Task<Result<void>> returning = come_back();
    const Result<void> returned = co_await returning;
    if (!returned) co_return returned.error();
  }
  auto subscription = std::make_shared<Subscription>();
  subscription->filter = std::move(filter);
  Task<Result<void>> beginning = begin(subscription);
  const Result<void> begun = co_await beginning;
  if (!begun) co_return begun.error();
  const std::uint64_t id = ++last_subscription_;
  subscription->number = id;
  subscriptions_[id] = std::move(subscription);
  co_return id;
}

Task<Result<void>> ClientSession::begin(std::shared_ptr<Subscription> subscription) {
  return is_modern(revision_) ? listen_modern(std::move(subscription))
                              : listen_legacy(std::move(subscription));
}

// On a new connection nobody knows of our subscriptions.
Task<void> ClientSession::listen_again() {
  subscribed_.clear();
  std::vector<std::uint64_t> ids;
  for (const auto& [id, subscription] : subscriptions_) {
    subscription->uris.clear();
    ids.push_back(id);
  }
  for (const std::uint64_t id : ids) {
    const auto known = subscriptions_.find(id);
    if (known == subscriptions_.end()) continue;  // not wanted any more
    auto fresh = std::make_shared<Subscription>();
    fresh->filter = known->second->filter;
    fresh->number = id;
    Task<Result<void>> beginning = begin(fresh);
    const Result<void> begun = co_await beginning;
    if (!begun) {
      options_.connect.log.warning("a subscription could not be renewed",
                                   {{"reason", begun.error().message()}});
    } else if (const auto still = subscriptions_.find(id); still != subscriptions_.end()) {
      still->second = std::move(fresh);
    } else {
      fresh->stop.request_stop();
    }
  }
}

Task<Result<void>> ClientSession::listen_modern(std::shared_ptr<Subscription> subscription) {
  connection_->loop().spawn(
      keep_listening(self(), peer_, subscription, enveloped(filter_params(subscription->filter))));
  const bool settled = co_await subscription->settled.wait(connection_->loop(), options_.handshake_timeout);
  beginning_.erase(subscription->request_id);
  if (subscription->acknowledged && subscription->honoured) co_return Result<void>();
  subscription->stop.request_stop();
  if (subscription->failed) co_return *subscription->failed;
  if (!settled) co_return Error(ErrorKind::timeout, "the server did not acknowledge the subscription");
  co_return Error(ErrorKind::validation, "the server tells of none of this");
}

// The request lasts as long as the subscription. The client itself is not kept by it.
Task<void> ClientSession::keep_listening(std::weak_ptr<ClientSession> weak, std::shared_ptr<Peer> peer,
                                         std::shared_ptr<Subscription> subscription, json::Raw params) {
  CallOptions options(kForEver);
  options.stop = subscription->stop.get_token();
  options.params_for_id = [weak, subscription, params](std::string_view id) {
    subscription->request_id = std::string(id);
    if (const auto self = weak.lock()) self->beginning_[subscription->request_id] = subscription;
    return params;
  };
  const Result<json::Raw> ended =
      co_await peer->call("subscriptions/listen", json::Raw(), std::move(options));
  if (!ended) subscription->failed = ended.error();
  subscription->settled.set();
  const auto self = weak.lock();
  if (self && subscription->honoured && self->place_of(subscription))
    self->loop_.spawn(renew(weak, &self->loop_, peer, subscription));
}

// The server, or somebody on the way, has ended a request that was to last. What it told of is still wanted.
Task<void> ClientSession::renew(std::weak_ptr<ClientSession> weak, Loop* loop, std::shared_ptr<Peer> peer,
                                std::shared_ptr<Subscription> lost) {
  for (std::chrono::milliseconds pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    co_await sleep_for(*loop, pause);
    const auto self = weak.lock();
    // A connection that is lost is another matter: see listen_again().
    if (!self || self->peer_ != peer || peer->end_reason() || !self->place_of(lost)) co_return;
    auto fresh = std::make_shared<Subscription>();
    fresh->filter = lost->filter;
    fresh->number = lost->number;
    Task<Result<void>> beginning = self->begin(fresh);
    const Result<void> begun = co_await beginning;
    std::shared_ptr<Subscription>* const place = self->place_of(lost);
    if (begun && place) {
      *place = fresh;
      self->tell_missed(fresh->filter);
      co_return;
    }
    if (begun) fresh->stop.request_stop();  // not wanted any more
    const bool refused = !begun && (begun.error().kind() == ErrorKind::remote ||
                                    begun.error().kind() == ErrorKind::validation);
    if (!begun)
      self->options_.connect.log.warning("a subscription could not be renewed",
                                         {{"reason", begun.error().message()}});
    if (begun || refused) co_return;
  }
}

std::shared_ptr<ClientSession::Subscription>* ClientSession::place_of(
    const std::shared_ptr<Subscription>& subscription) {
  const auto found = subscriptions_.find(subscription->number);
  return found != subscriptions_.end() && found->second == subscription ? &found->second : nullptr;
}

// Nobody knows what has changed meanwhile.
void ClientSession::tell_missed(const ListenFilter& filter) {
  if (filter.tools) tell("notifications/tools/list_changed", json::Raw());
  if (filter.prompts) tell("notifications/prompts/list_changed", json::Raw());
  if (filter.resources) tell("notifications/resources/list_changed", json::Raw());
  for (const std::string& uri : filter.uris) tell("notifications/resources/updated", uri_params(uri));
}

void ClientSession::tell(std::string_view method, const json::Raw& params) {
  cache_.on_notification(method, json::View(params));
  if (options_.handlers.notified) options_.handlers.notified(method, params);
}

void ClientSession::on_acknowledged(const rpc::Message& notification) {
  const json::Members meta(notification.param("_meta"), {kSubscriptionKey},
                           options_.lists.max_message_members);
  const std::string_view id = meta[kSubscriptionKey].text();
  const auto found = beginning_.find(id);
  if (found == beginning_.end()) return;
  const std::shared_ptr<Subscription> subscription = found->second;  // removed by the task that is woken
  subscription->acknowledged = true;
  subscription->honoured = json::has_more_members(notification.param("notifications"), 0);
  subscription->settled.set();
}

Task<Result<void>> ClientSession::listen_legacy(std::shared_ptr<Subscription> subscription) {
  for (const std::string& uri : subscription->filter.uris) {
    if (++subscribed_[uri] == 1) {
      ToolCallOptions options;
      Task<Result<json::Indexed>> asking =
          request_now("resources/subscribe", uri_params(uri), std::move(options));
      const Result<json::Indexed> answer = co_await asking;
      if (!answer) {
        if (--subscribed_[uri] == 0) subscribed_.erase(uri);
        Task<Result<void>> undoing = unlisten_legacy(subscription);
        const Result<void> undone = co_await undoing;
        static_cast<void>(undone);
        co_return answer.error();
      }
    }
    subscription->uris.push_back(uri);
  }
  co_return Result<void>();
}

Task<Result<void>> ClientSession::unlisten_legacy(std::shared_ptr<Subscription> subscription) {
  Result<void> outcome;
  for (const std::string& uri : subscription->uris) {
    if (--subscribed_[uri] > 0) continue;
    subscribed_.erase(uri);
    ToolCallOptions options;
    Task<Result<json::Indexed>> asking =
        request_now("resources/unsubscribe", uri_params(uri), std::move(options));
    const Result<json::Indexed> answer = co_await asking;
    if (!answer) outcome = answer.error();
  }
  co_return outcome;
}

Task<Result<void>> ClientSession::unlisten(std::uint64_t id) {
  const auto keep = self();
  const auto found = subscriptions_.find(id);
  if (found == subscriptions_.end()) co_return Error(ErrorKind::validation, "there is no such subscription");
  const std::shared_ptr<Subscription> subscription = found->second;
  subscriptions_.erase(found);
  subscription->stop.request_stop();
  if (away()) co_return Result<void>();  // the server has forgotten it already
  Task<Result<void>> ending = unlisten_legacy(subscription);
  Result<void> ended = co_await ending;
  co_return ended;
}

}  // namespace fairlead::mcp
