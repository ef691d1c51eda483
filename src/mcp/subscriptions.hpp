// Subscriptions of the modern era: each hears of changes by itself and tells its own client, so it makes no
// difference whether one connection carries many of them or every one has a stream of its own.
#pragma once

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
#include "mcp/subscription_shares.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::mcp {

// Resources of one connection, and of one subscriptions/listen (max_subscribed_resources), and the length of
// the URI of each (max_uri_bytes).
inline constexpr std::size_t kMostUris = 10'000;
inline constexpr std::size_t kMostUriBytes = 8192;

// The refusal of more resources than kMostUris.
Error too_many_resources();

// The method that tells of a changed list.
std::string_view changed_method(ListKind kind);

class Subscription final : public ChangeListener, public std::enable_shared_from_this<Subscription> {
 public:
  struct Wanted {
    bool tools = false;
    bool prompts = false;
    bool resources = false;
    std::set<std::string> uris;
    std::set<std::string> tasks;  // by id
    bool nothing() const noexcept {
      return !tools && !prompts && !resources && uris.empty() && tasks.empty();
    }
  };

  // `id` is that of the listen request, as spelled.
  Subscription(std::shared_ptr<ClientLink> link, std::string id, Wanted wanted, Log log)
      : link_(std::move(link)), id_(std::move(id)), wanted_(std::move(wanted)), log_(std::move(log)) {}
  // On any thread; the link is released on its loop.
  ~Subscription() override;

  // Tells the client what it will be told of; nothing is told before that. Pauses between parts of a long
  // list. Sends nothing if `stop` is requested meanwhile. REQUIRES: leave_out() is not called any more.
  Task<void> acknowledge(std::stop_token stop);
  const Wanted& wanted() const noexcept { return wanted_; }
  // Before that: takes back a promise that cannot be kept.
  void leave_out(const std::string& uri) { wanted_.uris.erase(uri); }
  // Set when it is to end. Nothing is told from then on.
  Event& ended() noexcept { return ended_; }
  // Posts that to the loop, so it may be called from anywhere.
  void end();

  // ChangeListener, from any thread
  std::string_view session() const noexcept override { return link_->session(); }
  const PrincipalPtr& principal() const noexcept override { return link_->principal(); }
  void list_changed(ListKind kind) override;
  void resource_updated(const std::string& uri) override;
  // The same, of a resource inside of one that is wanted.
  void part_updated(const std::string& uri);
  void task_changed(const std::string& id, const json::Raw& detailed) override;

 private:
  void tell(std::string_view method, std::string_view uri = {});
  static Task<void> write_array(json::Writer& out, const std::set<std::string>& strings, Loop& loop,
                                std::stop_token stop);

  std::shared_ptr<ClientLink> link_;
  std::string id_;
  Wanted wanted_;
  Log log_;
  PendingChanges pending_;
  bool acknowledged_ = false;
  Event ended_;
};

// Those open at one time on one connection, or on everything one server listens to, and the most there may
// be.
class Subscriptions {
 public:
  // Without limits of its own; `shares` has those of all that share it.
  explicit Subscriptions(std::shared_ptr<SubscriptionShares> shares) : shares_(std::move(shares)) {}
  // Those of one connection: at most `most` streams (max_listens) and kMostUris resources.
  Subscriptions(std::size_t most, std::shared_ptr<SubscriptionShares> shares)
      : most_(most), most_uris_(kMostUris), shares_(std::move(shares)) {}

  // For legacy subscriptions too.
  SubscriptionShares& shares() const noexcept { return *shares_; }

  // nullopt when there is room for one more.
  std::optional<Error> refusal(const Subscription::Wanted& wanted) const;
  // One of them is counted for as long as this lives.
  class Place {
   public:
    Place(std::shared_ptr<Subscriptions> all, std::shared_ptr<Subscription> one);
    Place(const Place&) = delete;
    ~Place();

   private:
    std::shared_ptr<Subscriptions> all_;
    std::shared_ptr<Subscription> one_;
    std::size_t uris_;
  };
  // Ends those that are open, and every later one as soon as it is acknowledged.
  void end_all();
  std::size_t size() const noexcept { return open_.size(); }

 private:
  std::size_t most_ = std::numeric_limits<std::size_t>::max();
  std::size_t most_uris_ = std::numeric_limits<std::size_t>::max();
  std::shared_ptr<SubscriptionShares> shares_;
  std::size_t uris_ = 0;
  bool ended_ = false;
  std::unordered_set<std::shared_ptr<Subscription>> open_;
};

}  // namespace fairlead::mcp
