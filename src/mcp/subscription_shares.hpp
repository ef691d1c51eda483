// SubscriptionShares: how many subscriptions the clients of a server have, and the most that one client and
// all clients may have. A client is a principal, or an address if it is anonymous (see client_key). Private
// to the layer; used on one loop.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "fairlead/base/principal.hpp"
#include "fairlead/base/result.hpp"

namespace fairlead::mcp {

// Error -32603 "Subscription limit reached: `whose` over `name` (`limit`)". `whose` has a verb: "this client
// is".
Error subscription_limit_error(std::string_view whose, std::string_view name, std::size_t limit);

struct SubscriptionLimits {
  // A resource that is subscribed to counts as one, and so does a stream of changes without resources.
  std::size_t max_subscriptions = std::numeric_limits<std::size_t>::max();
  std::size_t max_client_subscriptions = std::numeric_limits<std::size_t>::max();
};

class SubscriptionShares : public std::enable_shared_from_this<SubscriptionShares> {
 public:
  explicit SubscriptionShares(SubscriptionLimits limits) : limits_(limits) {}

  // Subscriptions that are counted for as long as this lives.
  class Share {
   public:
    Share(std::shared_ptr<SubscriptionShares> all, std::string client, std::size_t count);
    Share(Share&& other) noexcept = default;
    Share(const Share&) = delete;
    Share& operator=(Share&&) = delete;
    ~Share();

   private:
    std::shared_ptr<SubscriptionShares> all_;
    std::string client_;
    std::size_t count_;
  };
  // Fails with -32603, naming the limit, when that would be too many.
  Result<Share> take(const Principal& client, std::size_t count);

 private:
  SubscriptionLimits limits_;
  std::size_t total_ = 0;
  std::unordered_map<std::string, std::size_t> by_client_;
};

}  // namespace fairlead::mcp
