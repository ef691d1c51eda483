#include "pool/waiting_calls.hpp"

#include "pool/pool_core.hpp"

namespace fairlead::pool {

WaitingCalls::Entry::Entry(WaitingCalls& calls, std::string client)
    : calls_(&calls), client_(std::move(client)) {
  if (!client_.empty()) ++calls_->by_client_[client_];
  ++calls_->total_;
}

Result<WaitingCalls::Entry> WaitingCalls::add(const std::string& client, Clock::duration retry_after) {
  const std::size_t limit = limits_.max_waiting_calls;
  if (total_ >= limit)
    return limit_error("max_waiting_calls (" + std::to_string(limit) + ") calls are already waiting",
                       retry_after);
  const std::size_t client_limit = limits_.max_client_waiting_calls;
  const auto found = by_client_.find(client);
  const std::size_t waiting = found == by_client_.end() ? 0 : found->second;
  if (!client.empty() && waiting >= client_limit)
    return limit_error("max_client_waiting_calls (" + std::to_string(client_limit) +
                           ") calls of this client are already waiting",
                       retry_after);
  return Entry(*this, client);
}

void WaitingCalls::remove(const std::string& client) noexcept {
  --total_;
  const auto found = by_client_.find(client);
  if (found != by_client_.end() && --found->second == 0) by_client_.erase(found);
}

}  // namespace fairlead::pool
