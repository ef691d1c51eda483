// SubscriptionQuota: counts the subscriptions of the clients of a server and limits them, per client and in
// total. A client is a principal, or an address if it is anonymous (see client_key()). Used on one loop
// thread. Private to the layer.
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

// Returns error -32603 "Subscription limit reached: `subject` over `name` (`limit`)". `subject` ends with a
// verb, for example "this client is".
Error subscription_limit_error(std::string_view subject, std::string_view name, std::size_t limit);

struct SubscriptionLimits {
  // Each subscribed resource counts as one, and so does a subscriptions/listen stream without resources.
  std::size_t max_subscriptions = std::numeric_limits<std::size_t>::max();
  std::size_t max_client_subscriptions = std::numeric_limits<std::size_t>::max();
};

class SubscriptionQuota : public std::enable_shared_from_this<SubscriptionQuota> {
 public:
  explicit SubscriptionQuota(SubscriptionLimits limits) : limits_(limits) {}

  // Counts `count` subscriptions of `client` for as long as the Charge exists.
  class Charge {
   public:
    Charge(std::shared_ptr<SubscriptionQuota> quota, std::string client, std::size_t count);
    Charge(Charge&& other) noexcept = default;
    Charge(const Charge&) = delete;
    Charge& operator=(Charge&&) = delete;
    ~Charge();

   private:
    std::shared_ptr<SubscriptionQuota> quota_;
    std::string client_;
    std::size_t count_;
  };
  // Counts `count` more subscriptions of `client`. Fails with -32603 and a message that names the limit if a
  // limit would be exceeded.
  Result<Charge> charge(const Principal& client, std::size_t count);

 private:
  SubscriptionLimits limits_;
  std::size_t total_count_ = 0;
  std::unordered_map<std::string, std::size_t> counts_by_client_;
};

}  // namespace fairlead::mcp
