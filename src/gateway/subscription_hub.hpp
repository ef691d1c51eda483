// SubscriptionHub: the resource subscriptions of clients. All subscribers of a resource that are served by
// the same upstream share one subscription at that upstream. When the upstream is lost or replaced, or when
// the server is no longer shared, the hub subscribes them again (renewal). Work for many subscribers is done
// in slices (loop/slices.hpp). Private to the layer.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "fairlead/base/log.hpp"
#include "fairlead/base/log_rate_limit.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/pool/pool.hpp"

namespace fairlead::gateway {

class SubscriptionHub : public std::enable_shared_from_this<SubscriptionHub> {
 public:
  using UpdateCallback = std::function<void(const std::string& uri)>;

  // Each server is sent at most this many concurrent requests to renew subscriptions, and as many concurrent
  // requests to unsubscribe.
  static constexpr std::size_t kMaxConcurrentRequests = 64;

  SubscriptionHub(Loop& loop, std::shared_ptr<pool::Pool> pool, Log log)
      : loop_(loop), pool_(std::move(pool)), log_(std::move(log)) {}

  // Subscribes to the resource `uri` of the server `target`. Completes when the server has confirmed the
  // subscription. Returns a handle; releasing it ends the subscription. `on_update` is called for each update
  // until then. While the subscription waits for its server, now or when it is renewed, it counts as a
  // waiting call of `client` (null: of no client).
  Task<Result<std::shared_ptr<void>>> subscribe(pool::Target target, std::string uri, std::stop_token stop,
                                                UpdateCallback on_update, PrincipalPtr client = nullptr);
  // Notifies the subscribers that `upstream` has updated a resource. Called on the loop thread. Notifies a
  // few subscribers before it returns, and many subscribers in slices.
  void handle_resource_updated(const pool::Upstream& upstream, const std::string& uri);
  // Called when the upstreams of a server have changed. Subscribes the subscribers again that have lost their
  // upstream; with `all_subscribers` also the others, because another upstream may serve them now.
  void renew(const std::string& server, bool all_subscribers = false);
  // Stops notifying and subscribing. Does not unsubscribe at the servers, because these are about to be
  // stopped.
  void stop();

 private:
  struct UpstreamRef;         // keeps an upstream running while it has subscriptions
  struct SharedSubscription;  // the subscription to one resource at one upstream
  struct Subscriber;          // one subscribe() call, pending or successful
  struct SubscriptionHandle;  // returned by subscribe(); its destruction ends the subscriber's subscription
  struct ServerSubscribers;   // the subscribers of one server, and the queue of subscribers to renew

  // Acquires the upstream that serves `subscriber` now, and gives the subscriber a share of the subscription
  // at this upstream. Repeats this if the upstreams change meanwhile.
  Task<Result<void>> attach(std::shared_ptr<Subscriber> subscriber);
  // Returns the subscription to `uri` at the upstream of `lease`; subscribes if there is none.
  Task<Result<std::shared_ptr<SharedSubscription>>> share_subscription(pool::Lease lease, std::string uri);
  // Returns the reference to the upstream of `lease`; creates it if there is none.
  Result<std::shared_ptr<UpstreamRef>> ref_upstream(const pool::Lease& lease);
  static Task<void> dispatch_updates(std::shared_ptr<UpstreamRef> ref);

  // Returns the subscribers of `server`; adds an empty group if there is none.
  ServerSubscribers& subscribers_of(const std::string& server);
  void erase_if_unused(const std::string& server);
  // Queues the subscribers of `server` that must be renewed, in slices, and starts to renew them.
  static Task<void> queue_renewals(std::shared_ptr<SubscriptionHub> self, std::string server);
  // Starts renew_queued() unless it runs or the queue of `server` is empty.
  void start_renewing(const std::string& server);
  // Renews the subscribers in the queue of `server`, at most kMaxConcurrentRequests at a time.
  static Task<void> renew_queued(std::shared_ptr<SubscriptionHub> self, std::string server);
  // Attaches one subscriber again. If it gets another subscription, notifies it of an update, because it may
  // have missed one.
  static Task<void> renew_subscriber(std::shared_ptr<SubscriptionHub> self,
                                     std::shared_ptr<ServerSubscribers> group,
                                     std::shared_ptr<Subscriber> subscriber);
  void handle_renewal_failure(const std::shared_ptr<Subscriber>& subscriber, const Error& error);
  void retry_later(const std::shared_ptr<Subscriber>& subscriber, const Error& error);

  Loop& loop_;
  std::shared_ptr<pool::Pool> pool_;
  Log log_;
  LogRateLimit log_limit_;
  std::map<std::string, std::shared_ptr<ServerSubscribers>> subscribers_by_server_;  // by name
  std::map<const pool::UpstreamConnection*, std::weak_ptr<UpstreamRef>> upstream_refs_;
  bool stopping_ = false;
};

}  // namespace fairlead::gateway
