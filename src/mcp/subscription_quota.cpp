#include "mcp/subscription_quota.hpp"

#include <utility>

#include "fairlead/rpc/codes.hpp"

namespace fairlead::mcp {

Error subscription_limit_error(std::string_view subject, std::string_view name, std::size_t limit) {
  return Error::rpc(rpc::kInternalError, "Subscription limit reached: " + std::string(subject) + " over " +
                                             std::string(name) + " (" + std::to_string(limit) + ")");
}

SubscriptionQuota::Charge::Charge(std::shared_ptr<SubscriptionQuota> quota, std::string client,
                                  std::size_t count)
    : quota_(std::move(quota)), client_(std::move(client)), count_(count) {
  quota_->total_count_ += count_;
  quota_->counts_by_client_[client_] += count_;
}

SubscriptionQuota::Charge::~Charge() {
  if (!quota_) return;  // moved from
  quota_->total_count_ -= count_;
  const auto own = quota_->counts_by_client_.find(client_);
  own->second -= count_;
  if (own->second == 0) quota_->counts_by_client_.erase(own);
}

Result<SubscriptionQuota::Charge> SubscriptionQuota::charge(const Principal& client, std::size_t count) {
  std::string key = client_key(client);
  const auto known = counts_by_client_.find(key);
  const std::size_t own = known == counts_by_client_.end() ? 0 : known->second;
  if (count > limits_.max_client_subscriptions - own)
    return subscription_limit_error("this client is", "max_client_subscriptions",
                                    limits_.max_client_subscriptions);
  if (count > limits_.max_subscriptions - total_count_)
    return subscription_limit_error("all clients together are", "max_subscriptions",
                                    limits_.max_subscriptions);
  return Charge(shared_from_this(), std::move(key), count);
}

}  // namespace fairlead::mcp
