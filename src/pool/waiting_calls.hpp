// WaitingCalls: counts the calls that wait for a start or for a permit of max_calls, per client and in total.
// Private to the layer.
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
  // REQUIRES: `limits` outlives the object.
  explicit WaitingCalls(const PoolLimits& limits) : limits_(limits) {}
  WaitingCalls(const WaitingCalls&) = delete;

  // Counts one waiting call for its lifetime. REQUIRES: the WaitingCalls outlives it.
  class Entry {
   public:
    Entry(WaitingCalls& calls, std::string client);
    Entry(Entry&& other) noexcept
        : calls_(std::exchange(other.calls_, nullptr)), client_(std::move(other.client_)) {}
    Entry& operator=(Entry&&) = delete;
    ~Entry() {
      if (calls_) calls_->remove(client_);
    }

   private:
    WaitingCalls* calls_;
    std::string client_;
  };

  // Counts a waiting call of `client`, a client key. The key of an internal request is empty; the limit per
  // client does not apply to it. Fails with `resource_exhausted` over max_client_waiting_calls or
  // max_waiting_calls.
  Result<Entry> add(const std::string& client, Clock::duration retry_after);

 private:
  void remove(const std::string& client) noexcept;

  const PoolLimits& limits_;
  std::size_t total_ = 0;
  std::unordered_map<std::string, std::size_t> by_client_;
};

}  // namespace fairlead::pool
