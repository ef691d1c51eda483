// Subscription: a subscriptions/listen request of the modern era. Each Subscription is a ChangeListener and
// notifies its client through a ClientLink, so the subscriptions may share one connection or have a stream
// each.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <unordered_set>

#include "fairlead/base/log.hpp"
#include "fairlead/loop/event.hpp"
#include "mcp/pending_changes.hpp"
#include "mcp/request_state.hpp"
#include "mcp/server_state.hpp"
#include "mcp/subscription_quota.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::mcp {

// Maximum number of resources of one connection and of one subscriptions/listen request
// (max_subscribed_resources), and maximum length of each URI (max_uri_bytes).
inline constexpr std::size_t kMaxSubscribedUris = 10'000;
inline constexpr std::size_t kMaxSubscribedUriBytes = 8192;

// Returns the error for subscriptions to more than kMaxSubscribedUris resources.
Error too_many_subscribed_resources_error();

// Returns the method of the notification of a change of the list.
std::string_view list_changed_method(ListKind kind);

class Subscription final : public ChangeListener, public std::enable_shared_from_this<Subscription> {
 public:
  // The changes that the client is notified of: those that it requested and the server supports.
  struct Filter {
    bool tools = false;
    bool prompts = false;
    bool resources = false;
    std::set<std::string> uris;
    std::set<std::string> task_ids;
    bool empty() const noexcept {
      return !tools && !prompts && !resources && uris.empty() && task_ids.empty();
    }
  };

  // `id` is the id of the subscriptions/listen request, verbatim JSON.
  Subscription(std::shared_ptr<ClientLink> link, std::string id, Filter filter, Log log)
      : link_(std::move(link)), id_(std::move(id)), filter_(std::move(filter)), log_(std::move(log)) {}
  // May run on any thread. The ClientLink is released on its loop.
  ~Subscription() override;

  // Sends the acknowledgement, which contains the filter. No other notification is sent before the
  // acknowledgement. A long filter is written in slices; if stop is requested meanwhile, nothing is sent.
  // REQUIRES: exclude_uri() is not called afterwards.
  Task<void> acknowledge(std::stop_token stop);
  const Filter& filter() const noexcept { return filter_; }
  // Removes a resource from the filter, because the backend has rejected the subscription to it.
  void exclude_uri(const std::string& uri) { filter_.uris.erase(uri); }
  // An event that is set when the subscription has to end. No notification is sent after that.
  Event& ended() noexcept { return ended_; }
  // Sets ended(), on the loop of the client. Thread-safe.
  void end();

  // ChangeListener: called from any thread.
  std::string_view session() const noexcept override { return link_->session(); }
  const PrincipalPtr& principal() const noexcept override { return link_->principal(); }
  void on_list_changed(ListKind kind) override;
  void on_resource_updated(const std::string& uri) override;
  // Posts a notification of an update of `uri` to the loop of the client. REQUIRES: `uri` is in the filter,
  // or nested in a resource of the filter. Thread-safe.
  void post_resource_updated(const std::string& uri);
  void on_task_changed(const std::string& id, const json::Raw& detailed_task) override;

 private:
  void notify_client(std::string_view method, std::string_view uri = {});
  static Task<void> write_string_array(json::Writer& out, const std::set<std::string>& strings, Loop& loop,
                                       std::stop_token stop);

  std::shared_ptr<ClientLink> link_;
  std::string id_;
  Filter filter_;
  Log log_;
  PendingChanges pending_changes_;
  bool acknowledged_ = false;
  Event ended_;
};

// The subscriptions that are open on one connection, or at all HTTP endpoints of a server, and their limits.
class SubscriptionRegistry {
 public:
  // For all HTTP endpoints of a server: only the limits of `quota` apply.
  explicit SubscriptionRegistry(std::shared_ptr<SubscriptionQuota> quota) : quota_(std::move(quota)) {}
  // For one connection: at most `max_listens` subscriptions and kMaxSubscribedUris resources.
  SubscriptionRegistry(std::size_t max_listens, std::shared_ptr<SubscriptionQuota> quota)
      : max_listens_(max_listens), max_subscribed_uris_(kMaxSubscribedUris), quota_(std::move(quota)) {}

  // The quota to which subscriptions are charged, also those of legacy clients.
  SubscriptionQuota& quota() const noexcept { return *quota_; }

  // Returns the error if a subscription with this filter would exceed a limit of the connection; otherwise
  // nullopt.
  std::optional<Error> check_limits(const Subscription::Filter& filter) const;
  // Counts a subscription as open for as long as the Registration exists.
  class Registration {
   public:
    Registration(std::shared_ptr<SubscriptionRegistry> subscriptions,
                 std::shared_ptr<Subscription> subscription);
    Registration(const Registration&) = delete;
    ~Registration();

   private:
    std::shared_ptr<SubscriptionRegistry> subscriptions_;
    std::shared_ptr<Subscription> subscription_;
    std::size_t uri_count_;
  };
  // Ends all open subscriptions. Subscriptions that are registered later end as soon as they are
  // acknowledged.
  void end_all();
  // Ends the open subscriptions of the clients for which `selected` returns true.
  void end_if(const std::function<bool(const Principal&)>& selected);
  // Returns the number of open subscriptions.
  std::size_t open_count() const noexcept { return open_.size(); }

 private:
  std::size_t max_listens_ = std::numeric_limits<std::size_t>::max();
  std::size_t max_subscribed_uris_ = std::numeric_limits<std::size_t>::max();
  std::shared_ptr<SubscriptionQuota> quota_;
  std::size_t uri_count_ = 0;  // of all open subscriptions
  bool ended_ = false;         // end_all() was called
  std::unordered_set<std::shared_ptr<Subscription>> open_;
};

}  // namespace fairlead::mcp
