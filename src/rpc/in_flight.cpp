#include "fairlead/rpc/in_flight.hpp"

#include <algorithm>

namespace fairlead::rpc {

namespace {

constexpr std::size_t kFirstSlots = 16;
constexpr std::size_t kKeepSlots = 1024;  // a larger table is given back when it is empty
constexpr std::size_t kRememberAbandoned = 4096;

}  // namespace

void InFlight::add(PendingCall& call) {
  if (2 * count_ >= slots_.size()) grow();
  while (slots_[slot(next_id_)]) ++next_id_;
  call.id = next_id_++;
  slots_[slot(call.id)] = &call;
  if (count_++ == 0) earliest_ = Time::max();
  earliest_ = std::min(earliest_, call.deadline);
}

void InFlight::grow() {
  const std::vector<PendingCall*> old = std::move(slots_);
  slots_.assign(std::max(kFirstSlots, 2 * old.size()), nullptr);
  for (PendingCall* call : old) {
    if (call) slots_[slot(call->id)] = call;
  }
}

PendingCall* InFlight::find(std::uint64_t id) const noexcept {
  if (slots_.empty()) return nullptr;
  PendingCall* call = slots_[slot(id)];
  return call && call->id == id ? call : nullptr;
}

PendingCall* InFlight::take(std::uint64_t id) noexcept {
  PendingCall* call = find(id);
  if (!call) return nullptr;
  slots_[slot(id)] = nullptr;
  if (--count_ == 0 && slots_.size() > kKeepSlots) std::vector<PendingCall*>().swap(slots_);
  return call;
}

void InFlight::abandon(PendingCall& call) {
  if (take(call.id)) remember(call.id);
}

void InFlight::remember(std::uint64_t id) {
  abandoned_.insert(id);
  abandoned_order_.push_back(id);
  if (abandoned_order_.size() > kRememberAbandoned) {
    abandoned_.erase(abandoned_order_.front());
    abandoned_order_.pop_front();
  }
}

bool InFlight::was_abandoned(std::uint64_t id) {
  return abandoned_.erase(id) > 0;
}

// A sweep over all calls, but only when the earliest deadline known has come: under steady traffic that is
// once per timeout, and no call pays for a timer of its own.
std::vector<std::uint64_t> InFlight::expired(Time now) {
  std::vector<std::uint64_t> due;
  if (now < next_deadline()) return due;
  earliest_ = Time::max();
  for (const PendingCall* call : slots_) {
    if (!call) continue;
    if (call->deadline <= now) {
      due.push_back(call->id);
    } else {
      earliest_ = std::min(earliest_, call->deadline);
    }
  }
  return due;
}

std::vector<std::uint64_t> InFlight::ids() const {
  std::vector<std::uint64_t> all;
  for (const PendingCall* call : slots_) {
    if (call) all.push_back(call->id);
  }
  return all;
}

}  // namespace fairlead::rpc
