#include "mcp/subscription_shares.hpp"

#include <utility>

#include "fairlead/rpc/codes.hpp"

namespace fairlead::mcp {

Error subscription_limit_error(std::string_view whose, std::string_view name, std::size_t limit) {
  return Error::rpc(rpc::kInternalError, "Subscription limit reached: " + std::string(whose) + " over " +
                                             std::string(name) + " (" + std::to_string(limit) + ")");
}

SubscriptionShares::Share::Share(std::shared_ptr<SubscriptionShares> all, std::string client,
                                 std::size_t count)
    : all_(std::move(all)), client_(std::move(client)), count_(count) {
  all_->total_ += count_;
  all_->by_client_[client_] += count_;
}

SubscriptionShares::Share::~Share() {
  if (!all_) return;  // moved from
  all_->total_ -= count_;
  const auto own = all_->by_client_.find(client_);
  own->second -= count_;
  if (own->second == 0) all_->by_client_.erase(own);
}

Result<SubscriptionShares::Share> SubscriptionShares::take(const Principal& client, std::size_t count) {
  std::string key = client_key(client);
  const auto known = by_client_.find(key);
  const std::size_t own = known == by_client_.end() ? 0 : known->second;
  if (count > limits_.max_client_subscriptions - own)
    return subscription_limit_error("this client is", "max_client_subscriptions",
                                    limits_.max_client_subscriptions);
  if (count > limits_.max_subscriptions - total_)
    return subscription_limit_error("all clients together are", "max_subscriptions",
                                    limits_.max_subscriptions);
  return Share(shared_from_this(), std::move(key), count);
}

}  // namespace fairlead::mcp
