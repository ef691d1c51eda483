#include "pool/waiting_calls.hpp"

#include "pool/core.hpp"

namespace fairlead::pool {

WaitingCalls::Counted::Counted(WaitingCalls& calls, std::string client)
    : calls_(&calls), client_(std::move(client)) {
  if (!client_.empty()) ++calls_->by_client_[client_];
  ++calls_->total_;
}

Result<WaitingCalls::Counted> WaitingCalls::add(const std::string& client, Clock::duration retry_after) {
  const std::size_t most = limits_.max_waiting_calls;
  if (total_ >= most)
    return limit_reached("max_waiting_calls (" + std::to_string(most) + ") calls wait already", retry_after);
  const std::size_t share = limits_.max_client_waiting_calls;
  const auto found = by_client_.find(client);
  const std::size_t waiting = found == by_client_.end() ? 0 : found->second;
  if (!client.empty() && waiting >= share)
    return limit_reached(
        "max_client_waiting_calls (" + std::to_string(share) + ") calls of this client wait already",
        retry_after);
  return Counted(*this, client);
}

void WaitingCalls::remove(const std::string& client) noexcept {
  --total_;
  const auto found = by_client_.find(client);
  if (found != by_client_.end() && --found->second == 0) by_client_.erase(found);
}

}  // namespace fairlead::pool
