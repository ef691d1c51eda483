// ClientSession: subscriptions to changes of the server. Legacy era: the server notifies clients of list
// changes without a subscription, and the client sends a resources/subscribe request for each resource.
// Modern era: the client sends one subscriptions/listen request per subscription, which stays in flight for
// as long as the subscription lasts.
#include "fairlead/loop/event.hpp"
#include "json/members.hpp"
#include "mcp/client_session.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::mcp {

namespace {

// Delay before the client renews a subscription that the server has ended. The delay is doubled after each
// failure.
constexpr std::chrono::milliseconds kInitialBackoff{100};
constexpr std::chrono::milliseconds kMaxBackoff{60'000};

// Returns the params of subscriptions/listen.
json::Raw listen_params(const SubscriptionFilter& filter) {
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

// A subscription of this client. In the modern era it is in effect once the server has acknowledged it.
struct ClientSession::Subscription {
  SubscriptionFilter filter;
  std::uint64_t id = 0;    // its key in subscriptions_; 0 before it is added
  std::string request_id;  // modern era: the id of its subscriptions/listen request
  bool acknowledged = false;
  bool accepted = false;       // the acknowledgement contains at least one of the requested changes
  std::optional<Error> error;  // why the request failed
  Event resolved;              // set when the server has acknowledged or ended the request
  std::stop_source stop;
  std::vector<std::string> subscribed_uris;  // legacy era: where resources/subscribe has succeeded
};

Task<Result<std::uint64_t>> ClientSession::subscribe(SubscriptionFilter filter) {
  const auto keep_alive = self();
  if (needs_reconnect()) {
    const Result<void> reconnected = co_await reconnect();
    if (!reconnected) co_return reconnected.error();
  }
  auto subscription = std::make_shared<Subscription>();
  subscription->filter = std::move(filter);
  const Result<void> subscribed = co_await subscribe_at_server(subscription);
  if (!subscribed) co_return subscribed.error();
  const std::uint64_t id = ++last_subscription_id_;
  subscription->id = id;
  subscriptions_[id] = std::move(subscription);
  co_return id;
}

Task<Result<void>> ClientSession::subscribe_at_server(std::shared_ptr<Subscription> subscription) {
  return is_modern(revision_) ? subscribe_modern(std::move(subscription))
                              : subscribe_legacy(std::move(subscription));
}

// Subscriptions end with their connection, so the server has none of them.
Task<void> ClientSession::restore_subscriptions() {
  subscription_counts_by_uri_.clear();
  std::vector<std::uint64_t> ids;
  for (const auto& [id, subscription] : subscriptions_) {
    subscription->subscribed_uris.clear();
    ids.push_back(id);
  }
  for (const std::uint64_t id : ids) {
    const auto previous = subscriptions_.find(id);
    if (previous == subscriptions_.end()) continue;  // unsubscribed in the meantime
    auto replacement = std::make_shared<Subscription>();
    replacement->filter = previous->second->filter;
    replacement->id = id;
    const Result<void> subscribed = co_await subscribe_at_server(replacement);
    if (!subscribed) {
      options_.connect.log.warning("cannot renew subscription", {{"reason", subscribed.error().message()}});
    } else if (const auto current = subscriptions_.find(id); current != subscriptions_.end()) {
      current->second = std::move(replacement);
    } else {
      replacement->stop.request_stop();
    }
  }
}

Task<Result<void>> ClientSession::subscribe_modern(std::shared_ptr<Subscription> subscription) {
  connection_->loop().spawn(
      run_listen_request(self(), peer_, subscription, with_envelope(listen_params(subscription->filter))));
  const bool resolved = co_await subscription->resolved.wait(connection_->loop(), options_.handshake_timeout);
  unacknowledged_.erase(subscription->request_id);
  if (subscription->acknowledged && subscription->accepted) co_return Result<void>();
  subscription->stop.request_stop();
  if (subscription->error) co_return *subscription->error;
  if (!resolved) co_return Error(ErrorKind::timeout, "the server did not acknowledge the subscription");
  co_return Error(ErrorKind::validation, "the server supports none of the requested notifications");
}

// Has only a weak reference to the client, so that a subscription does not keep the client alive.
Task<void> ClientSession::run_listen_request(std::weak_ptr<ClientSession> weak, std::shared_ptr<Peer> peer,
                                             std::shared_ptr<Subscription> subscription, json::Raw params) {
  CallOptions options(kNoTimeout);
  options.stop = subscription->stop.get_token();
  options.params_for_id = [weak, subscription, params](std::string_view id) {
    subscription->request_id = std::string(id);
    if (const auto self = weak.lock()) self->unacknowledged_[subscription->request_id] = subscription;
    return params;
  };
  const Result<json::Raw> ended =
      co_await peer->call("subscriptions/listen", json::Raw(), std::move(options));
  if (!ended) subscription->error = ended.error();
  subscription->resolved.set();
  const auto self = weak.lock();
  if (self && subscription->accepted && self->find_subscription_entry(subscription))
    self->loop_.spawn(renew_subscription(weak, &self->loop_, peer, subscription));
}

// The server or an intermediary may end the request of a subscription.
Task<void> ClientSession::renew_subscription(std::weak_ptr<ClientSession> weak, Loop* loop,
                                             std::shared_ptr<Peer> peer,
                                             std::shared_ptr<Subscription> ended) {
  for (std::chrono::milliseconds pause = kInitialBackoff;; pause = std::min(2 * pause, kMaxBackoff)) {
    co_await sleep_for(*loop, pause);
    const auto self = weak.lock();
    // If the connection is lost, restore_subscriptions() renews the subscription instead.
    if (!self || self->peer_ != peer || peer->end_reason() || !self->find_subscription_entry(ended))
      co_return;
    auto replacement = std::make_shared<Subscription>();
    replacement->filter = ended->filter;
    replacement->id = ended->id;
    const Result<void> subscribed = co_await self->subscribe_at_server(replacement);
    std::shared_ptr<Subscription>* const entry = self->find_subscription_entry(ended);
    if (subscribed && entry) {
      *entry = replacement;
      self->notify_all_changes(replacement->filter);
      co_return;
    }
    if (subscribed) replacement->stop.request_stop();  // unsubscribed in the meantime
    const bool rejected = !subscribed && (subscribed.error().kind() == ErrorKind::remote ||
                                          subscribed.error().kind() == ErrorKind::validation);
    if (!subscribed)
      self->options_.connect.log.warning("cannot renew subscription",
                                         {{"reason", subscribed.error().message()}});
    if (subscribed || rejected) co_return;
  }
}

std::shared_ptr<ClientSession::Subscription>* ClientSession::find_subscription_entry(
    const std::shared_ptr<Subscription>& subscription) {
  const auto found = subscriptions_.find(subscription->id);
  return found != subscriptions_.end() && found->second == subscription ? &found->second : nullptr;
}

void ClientSession::notify_all_changes(const SubscriptionFilter& filter) {
  if (filter.tools) dispatch_notification("notifications/tools/list_changed", json::Raw());
  if (filter.prompts) dispatch_notification("notifications/prompts/list_changed", json::Raw());
  if (filter.resources) dispatch_notification("notifications/resources/list_changed", json::Raw());
  for (const std::string& uri : filter.uris)
    dispatch_notification("notifications/resources/updated", uri_params(uri));
}

void ClientSession::dispatch_notification(std::string_view method, const json::Raw& params) {
  cache_.invalidate_by_notification(method, json::View(params));
  if (options_.handlers.on_notification) options_.handlers.on_notification(method, params);
}

void ClientSession::handle_acknowledgement(const rpc::Message& notification) {
  const json::Members meta(notification.param("_meta"), {kSubscriptionKey},
                           options_.list_limits.max_message_members);
  const std::string_view id = meta[kSubscriptionKey].text();
  const auto found = unacknowledged_.find(id);
  if (found == unacknowledged_.end()) return;
  const std::shared_ptr<Subscription> subscription = found->second;  // subscribe_modern() erases the entry
  subscription->acknowledged = true;
  subscription->accepted = json::has_more_members_than(notification.param("notifications"), 0);
  subscription->resolved.set();
}

Task<Result<void>> ClientSession::subscribe_legacy(std::shared_ptr<Subscription> subscription) {
  for (const std::string& uri : subscription->filter.uris) {
    if (++subscription_counts_by_uri_[uri] == 1) {
      ClientCallOptions options;
      const Result<json::IndexedRaw> response = co_await request_to_completion(
          "resources/subscribe", RequestParams(uri_params(uri)), std::move(options));
      if (!response) {
        if (--subscription_counts_by_uri_[uri] == 0) subscription_counts_by_uri_.erase(uri);
        static_cast<void>(co_await unsubscribe_legacy(subscription));
        co_return response.error();
      }
    }
    subscription->subscribed_uris.push_back(uri);
  }
  co_return Result<void>();
}

Task<Result<void>> ClientSession::unsubscribe_legacy(std::shared_ptr<Subscription> subscription) {
  Result<void> outcome;
  for (const std::string& uri : subscription->subscribed_uris) {
    if (--subscription_counts_by_uri_[uri] > 0) continue;
    subscription_counts_by_uri_.erase(uri);
    ClientCallOptions options;
    const Result<json::IndexedRaw> response = co_await request_to_completion(
        "resources/unsubscribe", RequestParams(uri_params(uri)), std::move(options));
    if (!response) outcome = response.error();
  }
  co_return outcome;
}

Task<Result<void>> ClientSession::unsubscribe(std::uint64_t subscription_id) {
  const auto keep_alive = self();
  const auto found = subscriptions_.find(subscription_id);
  if (found == subscriptions_.end()) co_return Error(ErrorKind::validation, "unknown subscription");
  const std::shared_ptr<Subscription> subscription = found->second;
  subscriptions_.erase(found);
  subscription->stop.request_stop();
  if (needs_reconnect()) co_return Result<void>();  // the subscription ended with the connection
  Result<void> ended = co_await unsubscribe_legacy(subscription);
  co_return ended;
}

}  // namespace fairlead::mcp
