#include "gateway/subscription_hub.hpp"

#include <deque>
#include <set>
#include <vector>

#include "fairlead/base/string_map.hpp"
#include "fairlead/rpc/codes.hpp"
#include "gateway/update_queue.hpp"
#include "loop/slices.hpp"

namespace fairlead::gateway {

namespace {

// The delay before a failed renewal is retried, for errors without retry_after.
constexpr std::chrono::seconds kRetryDelay{30};

// Calls visit() for `uri` and for each URI that encloses it, such as "x://a" for "x://a/b": a server may
// notify of the update of a resource nested in the one that was subscribed to. Returns the total number of
// bytes of the visited URIs.
template <class Visit>
std::size_t for_each_enclosing_uri(std::string_view uri, Visit visit) {
  std::size_t bytes = uri.size();
  visit(uri);
  for (std::size_t end = uri.size(); end-- > 1;) {
    if (uri[end - 1] != '/' && !std::string_view("/?#").contains(uri[end])) continue;
    bytes += end;
    visit(uri.substr(0, end));
  }
  return bytes;
}

}  // namespace

// ---- state -----------------------------------------------------------------------------------------------

struct SubscriptionHub::UpstreamRef : std::enable_shared_from_this<UpstreamRef> {
  using Subscribers = std::vector<std::shared_ptr<Subscriber>>;

  UpstreamRef(std::shared_ptr<SubscriptionHub> owner, pool::Lease ref_lease)
      : hub(std::move(owner)), lease(std::move(ref_lease)) {}
  ~UpstreamRef() { hub->upstream_refs_.erase(lease.connection().get()); }

  bool is_lost() const {
    const pool::Upstream& upstream = *lease.upstream();
    return upstream.state() != pool::UpstreamState::ready || upstream.connection() != lease.connection();
  }
  // Appends the subscribers of `uri` and of the URIs that enclose it to `to`. Returns the number of bytes
  // compared, the cost of the search.
  std::size_t collect_subscribers(std::string_view uri, Subscribers& to) const;
  void collect_all_subscribers(Subscribers& to) const;
  // Erases the subscription to `uri` unless it has been replaced by a new one.
  void erase_expired(const std::string& uri) {
    const auto found = subscriptions.find(uri);
    if (found != subscriptions.end() && found->second.expired()) subscriptions.erase(found);
  }
  // Queues a request to end a subscription at the server. At most kMaxConcurrentRequests are sent at a time.
  void queue_unsubscribe(std::uint64_t number);
  static Task<void> unsubscribe_queued(std::shared_ptr<UpstreamRef> self);

  std::shared_ptr<SubscriptionHub> hub;
  pool::Lease lease;
  StringMap<std::weak_ptr<SharedSubscription>> subscriptions;  // by URI
  UpdateQueue updates;
  bool dispatching = false;                     // dispatch_updates() runs
  Slices slices;                                // of dispatch_updates()
  std::deque<std::uint64_t> unsubscribe_queue;  // numbers of subscriptions to end at the server
  std::size_t unsubscribe_task_count = 0;       // running unsubscribe_queued() tasks
};

// Owned by its subscribers. Unsubscribes at the server when the last of them releases it.
struct SubscriptionHub::SharedSubscription {
  SharedSubscription(std::shared_ptr<UpstreamRef> at, std::string resource)
      : ref(std::move(at)), uri(std::move(resource)) {}
  ~SharedSubscription() {
    ref->erase_expired(uri);
    if (number && !ref->hub->stopping_ && !ref->is_lost()) ref->queue_unsubscribe(*number);
  }

  std::shared_ptr<UpstreamRef> ref;
  std::string uri;
  std::set<Subscriber*> subscribers;
  Event answered;  // set when `number` or `error` is set
  std::optional<Error> error;
  std::optional<std::uint64_t> number;  // identifies the subscription on the upstream connection
};

struct SubscriptionHub::Subscriber : std::enable_shared_from_this<Subscriber> {
  Subscriber(std::shared_ptr<SubscriptionHub> owner, pool::Target at, PrincipalPtr principal,
             std::string resource, UpdateCallback callback);
  ~Subscriber();
  bool active() const { return !stop.stop_requested() && !hub->stopping_; }
  void set_subscription(std::shared_ptr<SharedSubscription> next) {
    if (subscription) subscription->subscribers.erase(this);
    subscription = std::move(next);
    if (subscription) subscription->subscribers.insert(this);
  }

  std::shared_ptr<SubscriptionHub> hub;
  pool::Target target;
  PrincipalPtr client;
  std::string uri;
  UpdateCallback on_update;
  std::stop_source stop;
  std::shared_ptr<SharedSubscription> subscription;
  bool attaching = false;  // attach() runs
  bool outdated = false;   // the upstreams have changed since attach() acquired one of them
  bool queued = false;     // in renewal_queue or failed_renewals
};

struct SubscriptionHub::ServerSubscribers {
  explicit ServerSubscribers(Loop& loop) : retry_timer(loop) {}
  bool unused() const noexcept {
    return subscribers.empty() && active_renewals == 0 && !renewing && !queueing;
  }
  // Queues a subscriber for renewal if it has lost its upstream, or if `all_subscribers` is set. While
  // attach() runs for the subscriber, makes attach() repeat instead.
  void queue_if_needed(Subscriber& subscriber, bool all_subscribers);
  // Queues the subscribers whose renewal has failed.
  void queue_failed_renewals() {
    retry_timer.cancel();
    retry_at = Clock::time_point::max();
    renewal_queue.insert(renewal_queue.end(), failed_renewals.begin(), failed_renewals.end());
    failed_renewals.clear();
  }
  // Removes the next subscriber to be renewed from the queue and returns it; null if there is none.
  std::shared_ptr<Subscriber> pop_renewal();

  std::set<Subscriber*> subscribers;
  std::deque<std::weak_ptr<Subscriber>> renewal_queue;
  std::vector<std::weak_ptr<Subscriber>>
      failed_renewals;  // renewed when `retry_timer` fires or the upstreams change
  Timer retry_timer;
  Clock::time_point retry_at = Clock::time_point::max();  // when `retry_timer` fires
  bool renewing = false;                                  // renew_queued() runs
  std::size_t active_renewals = 0;                        // running renew_subscriber() tasks
  Event renewal_ended;                                    // a renew_subscriber() task has ended
  bool renewal_pending = false;  // the upstreams have changed since queue_renewals() began
  bool renew_all = false;  // the pending renewal is for all subscribers, not only those without upstream
  bool queueing = false;   // queue_renewals() runs
};

SubscriptionHub::Subscriber::Subscriber(std::shared_ptr<SubscriptionHub> owner, pool::Target at,
                                        PrincipalPtr principal, std::string resource, UpdateCallback callback)
    : hub(std::move(owner)),
      target(std::move(at)),
      client(std::move(principal)),
      uri(std::move(resource)),
      on_update(std::move(callback)) {
  hub->subscribers_of(target.server).subscribers.insert(this);
}

SubscriptionHub::Subscriber::~Subscriber() {
  set_subscription(nullptr);
  hub->subscribers_of(target.server).subscribers.erase(this);
  hub->erase_if_unused(target.server);
}

struct SubscriptionHub::SubscriptionHandle {
  explicit SubscriptionHandle(std::shared_ptr<Subscriber> owned) : subscriber(std::move(owned)) {}
  SubscriptionHandle(const SubscriptionHandle&) = delete;
  ~SubscriptionHandle() {
    subscriber->stop.request_stop();
    subscriber->set_subscription(nullptr);
  }

  std::shared_ptr<Subscriber> subscriber;
};

// ---- subscribing -----------------------------------------------------------------------------------------

Task<Result<std::shared_ptr<void>>> SubscriptionHub::subscribe(pool::Target target, std::string uri,
                                                               std::stop_token stop, UpdateCallback on_update,
                                                               PrincipalPtr client) {
  auto subscriber = std::make_shared<Subscriber>(shared_from_this(), std::move(target), std::move(client),
                                                 std::move(uri), std::move(on_update));
  auto handle = std::make_shared<SubscriptionHandle>(subscriber);
  const std::stop_callback on_stop(stop, [&subscriber] { subscriber->stop.request_stop(); });
  const Result<void> attached = co_await attach(subscriber);
  if (!attached) co_return attached.error();
  co_return std::shared_ptr<void>(std::move(handle));
}

Task<Result<void>> SubscriptionHub::attach(std::shared_ptr<Subscriber> subscriber) {
  const auto keep = shared_from_this();
  subscriber->attaching = true;
  Result<void> outcome;
  do {
    subscriber->outdated = false;
    pool::Target target = subscriber->target;
    Result<pool::Lease> lease = co_await pool_->acquire(std::move(target), subscriber->stop.get_token(),
                                                        pool::StartPriority::call, subscriber->client.get());
    outcome = lease ? Result<void>() : lease.error();
    if (!lease) continue;
    Result<std::shared_ptr<SharedSubscription>> subscription =
        co_await share_subscription(std::move(*lease), subscriber->uri);
    outcome = subscription ? Result<void>() : subscription.error();
    if (subscription && subscriber->active()) subscriber->set_subscription(std::move(*subscription));
  } while (subscriber->outdated && subscriber->active());
  subscriber->attaching = false;
  co_return outcome;
}

Task<Result<std::shared_ptr<SubscriptionHub::SharedSubscription>>> SubscriptionHub::share_subscription(
    pool::Lease lease, std::string uri) {
  // A legacy server is sent the request even if it does not declare `subscribe`: the Python SDK 1.x never
  // declares it.
  if (json::View(lease.connection()->server().capabilities)["resources"].absent()) {
    co_return Error::rpc(rpc::kMethodNotFound, "Server `" + lease.upstream()->spec().name +
                                                   "` does not support resource subscriptions");
  }
  const Result<std::shared_ptr<UpstreamRef>> referenced = ref_upstream(lease);
  if (!referenced) co_return referenced.error();
  const std::shared_ptr<UpstreamRef> ref = *referenced;
  if (const auto found = ref->subscriptions.find(uri); found != ref->subscriptions.end()) {
    const std::shared_ptr<SharedSubscription> subscription = found->second.lock();
    co_await subscription->answered.wait(loop_);
    if (subscription->error) co_return *subscription->error;
    co_return subscription;
  }
  const auto subscription = std::make_shared<SharedSubscription>(ref, uri);
  ref->subscriptions[uri] = subscription;
  mcp::SubscriptionFilter filter;
  filter.uris.push_back(uri);
  const Result<std::uint64_t> number = co_await lease.connection()->subscribe(std::move(filter));
  if (number) {
    subscription->number = *number;
  } else {
    subscription->error = number.error();
    ref->subscriptions.erase(uri);  // owned by the tasks that wait for it; the next subscriber tries again
  }
  subscription->answered.set();
  if (subscription->error) co_return *subscription->error;
  co_return subscription;
}

// The reference owns a lease of Pool::keep_alive() instead of `lease`, because `lease` would count as a call
// for as long as the subscription lasts.
Result<std::shared_ptr<SubscriptionHub::UpstreamRef>> SubscriptionHub::ref_upstream(
    const pool::Lease& lease) {
  std::weak_ptr<UpstreamRef>& cached_ref = upstream_refs_[lease.connection().get()];
  if (std::shared_ptr<UpstreamRef> ref = cached_ref.lock()) return ref;
  Result<pool::Lease> ref_lease = pool_->keep_alive(lease.upstream());
  if (!ref_lease) {
    upstream_refs_.erase(lease.connection().get());
    return ref_lease.error();
  }
  auto ref = std::make_shared<UpstreamRef>(shared_from_this(), std::move(*ref_lease));
  cached_ref = ref;
  return ref;
}

// ---- updates ---------------------------------------------------------------------------------------------

void SubscriptionHub::handle_resource_updated(const pool::Upstream& upstream, const std::string& uri) {
  if (stopping_) return;
  const auto found = upstream_refs_.find(upstream.connection().get());
  const std::shared_ptr<UpstreamRef> ref = found == upstream_refs_.end() ? nullptr : found->second.lock();
  if (!ref) return;
  ref->updates.push(uri);
  if (!std::exchange(ref->dispatching, true)) loop_.spawn(dispatch_updates(ref));
}

Task<void> SubscriptionHub::dispatch_updates(std::shared_ptr<UpstreamRef> ref) {
  Loop& loop = ref->hub->loop_;
  while (!ref->updates.empty()) {
    const std::optional<std::string> uri = ref->updates.pop();
    UpstreamRef::Subscribers subscribers;  // owned here, because on_update() may release their handles
    const std::size_t cost = uri ? ref->collect_subscribers(*uri, subscribers) : 0;
    if (!uri) ref->collect_all_subscribers(subscribers);
    for (const std::shared_ptr<Subscriber>& subscriber : subscribers) {
      const std::string& updated = uri ? *uri : subscriber->uri;
      if (subscriber->active()) subscriber->on_update(updated);
      if (ref->slices.due(updated.size())) co_await sleep_for(loop, Slices::kPause);
    }
    if (ref->slices.due(cost)) co_await sleep_for(loop, Slices::kPause);
  }
  ref->dispatching = false;
}

std::size_t SubscriptionHub::UpstreamRef::collect_subscribers(std::string_view uri, Subscribers& to) const {
  return for_each_enclosing_uri(uri, [&](std::string_view enclosing) {
    const auto found = subscriptions.find(enclosing);
    const auto subscription = found == subscriptions.end() ? nullptr : found->second.lock();
    if (!subscription) return;
    for (Subscriber* const each : subscription->subscribers) to.push_back(each->shared_from_this());
  });
}

void SubscriptionHub::UpstreamRef::collect_all_subscribers(Subscribers& to) const {
  for (const auto& [uri, weak] : subscriptions) {
    const std::shared_ptr<SharedSubscription> subscription = weak.lock();
    if (!subscription) continue;
    for (Subscriber* const each : subscription->subscribers) to.push_back(each->shared_from_this());
  }
}

// ---- renewing --------------------------------------------------------------------------------------------

SubscriptionHub::ServerSubscribers& SubscriptionHub::subscribers_of(const std::string& server) {
  std::shared_ptr<ServerSubscribers>& group = subscribers_by_server_[server];
  if (!group) group = std::make_shared<ServerSubscribers>(loop_);
  return *group;
}

std::shared_ptr<SubscriptionHub::Subscriber> SubscriptionHub::ServerSubscribers::pop_renewal() {
  while (!renewal_queue.empty()) {
    const std::shared_ptr<Subscriber> next = renewal_queue.front().lock();
    renewal_queue.pop_front();
    if (next) next->queued = false;
    if (next && next->active() && !next->attaching) return next;
  }
  return nullptr;
}

void SubscriptionHub::renew(const std::string& server, bool all_subscribers) {
  const auto found = subscribers_by_server_.find(server);
  if (stopping_ || found == subscribers_by_server_.end()) return;
  ServerSubscribers& group = *found->second;
  group.renewal_pending = true;
  group.renew_all = group.renew_all || all_subscribers;
  group.queue_failed_renewals();
  if (!std::exchange(group.queueing, true)) loop_.spawn(queue_renewals(shared_from_this(), server));
}

Task<void> SubscriptionHub::queue_renewals(std::shared_ptr<SubscriptionHub> self, std::string server) {
  const std::shared_ptr<ServerSubscribers> group = self->subscribers_by_server_.at(server);
  Slices slices;
  while (std::exchange(group->renewal_pending, false)) {
    const bool all_subscribers = std::exchange(group->renew_all, false);
    Subscriber* last = nullptr;
    while (!self->stopping_) {
      const auto next = group->subscribers.upper_bound(last);
      if (next == group->subscribers.end()) break;
      last = *next;
      group->queue_if_needed(*last, all_subscribers);
      if (!slices.due(0)) continue;
      self->start_renewing(server);
      co_await sleep_for(self->loop_, Slices::kPause);
    }
  }
  group->queueing = false;
  self->start_renewing(server);
  self->erase_if_unused(server);
}

void SubscriptionHub::ServerSubscribers::queue_if_needed(Subscriber& subscriber, bool all_subscribers) {
  const bool lost = !subscriber.subscription || subscriber.subscription->ref->is_lost();
  // Released at once, because its reference keeps the upstream running, which may be about to be stopped.
  if (lost) subscriber.set_subscription(nullptr);
  if (!lost && !all_subscribers) return;
  subscriber.outdated = true;
  if (!subscriber.attaching && !std::exchange(subscriber.queued, true))
    renewal_queue.push_back(subscriber.weak_from_this());
}

void SubscriptionHub::erase_if_unused(const std::string& server) {
  const auto found = subscribers_by_server_.find(server);
  if (found != subscribers_by_server_.end() && found->second->unused()) subscribers_by_server_.erase(found);
}

void SubscriptionHub::start_renewing(const std::string& server) {
  const auto found = subscribers_by_server_.find(server);
  if (found == subscribers_by_server_.end() || found->second->renewal_queue.empty()) return;
  if (!std::exchange(found->second->renewing, true)) loop_.spawn(renew_queued(shared_from_this(), server));
}

// One task starts all renewals of a server, in slices. So even when many subscribers wait for the same
// subscription and all continue once the server has confirmed it, the remaining renewals are spread over
// slices.
Task<void> SubscriptionHub::renew_queued(std::shared_ptr<SubscriptionHub> self, std::string server) {
  const std::shared_ptr<ServerSubscribers> group = self->subscribers_by_server_.at(server);
  Slices slices;
  while (true) {
    const std::shared_ptr<Subscriber> next = group->pop_renewal();
    if (!next) break;
    ++group->active_renewals;
    self->loop_.spawn(renew_subscriber(self, group, next));
    if (slices.due(next->uri.size())) co_await sleep_for(self->loop_, Slices::kPause);
    while (group->active_renewals >= kMaxConcurrentRequests) {
      group->renewal_ended.reset();
      co_await group->renewal_ended.wait(self->loop_);
    }
  }
  group->renewing = false;
  self->erase_if_unused(server);
}

Task<void> SubscriptionHub::renew_subscriber(std::shared_ptr<SubscriptionHub> self,
                                             std::shared_ptr<ServerSubscribers> group,
                                             std::shared_ptr<Subscriber> subscriber) {
  const std::shared_ptr<SharedSubscription> before = subscriber->subscription;
  const Result<void> attached = co_await self->attach(subscriber);
  if (subscriber->active()) {
    if (!attached) self->handle_renewal_failure(subscriber, attached.error());
    if (attached && subscriber->subscription != before)
      subscriber->on_update(subscriber->uri);  // it may have missed updates meanwhile
  }
  --group->active_renewals;
  group->renewal_ended.set();
}

void SubscriptionHub::handle_renewal_failure(const std::shared_ptr<Subscriber>& subscriber,
                                             const Error& error) {
  log_limit_.write(
      log_, LogLevel::warning, "cannot subscribe again",
      {{"server", subscriber->target.server}, {"uri", subscriber->uri}, {"reason", error.message()}});
  if (error.kind() != ErrorKind::remote) retry_later(subscriber, error);
}

void SubscriptionHub::retry_later(const std::shared_ptr<Subscriber>& subscriber, const Error& error) {
  const std::string server = subscriber->target.server;
  ServerSubscribers& group = subscribers_of(server);
  subscriber->queued = true;
  group.failed_renewals.push_back(subscriber);
  const Clock::time_point when = Clock::now() + error.detail().retry_after.value_or(kRetryDelay);
  if (when >= group.retry_at) return;
  group.retry_at = when;
  group.retry_timer.arm(when, [weak = weak_from_this(), server] {
    const auto self = weak.lock();
    if (!self || self->stopping_) return;
    self->subscribers_of(server).queue_failed_renewals();
    self->start_renewing(server);
  });
}

void SubscriptionHub::stop() {
  stopping_ = true;
  for (const auto& [server, group] : subscribers_by_server_) {
    for (Subscriber* const subscriber : group->subscribers) {
      if (subscriber->attaching) subscriber->stop.request_stop();
    }
  }
}

// ---- unsubscribing ---------------------------------------------------------------------------------------

void SubscriptionHub::UpstreamRef::queue_unsubscribe(std::uint64_t number) {
  unsubscribe_queue.push_back(number);
  if (unsubscribe_task_count >= kMaxConcurrentRequests) return;
  ++unsubscribe_task_count;
  hub->loop_.spawn(unsubscribe_queued(shared_from_this()));
}

Task<void> SubscriptionHub::UpstreamRef::unsubscribe_queued(std::shared_ptr<UpstreamRef> self) {
  Slices slices;
  while (!self->unsubscribe_queue.empty() && !self->is_lost()) {
    const std::uint64_t number = self->unsubscribe_queue.front();
    self->unsubscribe_queue.pop_front();
    // The result is ignored: if the request fails because the server has ended, so has its subscription.
    static_cast<void>(co_await self->lease.connection()->unsubscribe(number));
    if (slices.due(0)) co_await sleep_for(self->hub->loop_, Slices::kPause);
  }
  --self->unsubscribe_task_count;
}

}  // namespace fairlead::gateway
