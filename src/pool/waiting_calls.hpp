// WaitingCalls: counts the calls that wait for their server's start or for their turn, of each client and
// together. Private to the layer.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>

#include "fairlead/base/result.hpp"
#include "fairlead/pool/pool.hpp"

namespace fairlead::pool {

class WaitingCalls {
 public:
  // `limits` outlives it.
  explicit WaitingCalls(const PoolLimits& limits) : limits_(limits) {}
  WaitingCalls(const WaitingCalls&) = delete;

  // A call that waits, until it is destroyed. The WaitingCalls outlives it.
  class Counted {
   public:
    Counted(WaitingCalls& calls, std::string client);
    Counted(Counted&& other) noexcept
        : calls_(std::exchange(other.calls_, nullptr)), client_(std::move(other.client_)) {}
    Counted& operator=(Counted&&) = delete;
    ~Counted() {
      if (calls_) calls_->remove(client_);
    }

   private:
    WaitingCalls* calls_;
    std::string client_;
  };

  // Counts a call of `client`; an empty name is no client and has no share. Fails with resource_exhausted
  // over max_client_waiting_calls or max_waiting_calls.
  Result<Counted> add(const std::string& client, Clock::duration retry_after);

 private:
  void remove(const std::string& client) noexcept;

  const PoolLimits& limits_;
  std::size_t total_ = 0;
  std::unordered_map<std::string, std::size_t> by_client_;
};

}  // namespace fairlead::pool
