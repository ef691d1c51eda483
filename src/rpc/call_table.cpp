#include "fairlead/rpc/call_table.hpp"

#include <algorithm>

namespace fairlead::rpc {

namespace {

constexpr std::size_t kInitialSlots = 16;
constexpr std::size_t kMaxIdleSlots = 1024;     // a larger table is freed when it becomes empty
constexpr std::size_t kMaxAbandonedIds = 4096;  // older ids are forgotten

}  // namespace

void CallTable::add(PendingCall& call) {
  if (2 * count_ >= slots_.size()) grow();
  while (slots_[slot_of(next_id_)]) ++next_id_;
  call.id = next_id_++;
  slots_[slot_of(call.id)] = &call;
  if (count_++ == 0) earliest_ = Time::max();
  earliest_ = std::min(earliest_, call.deadline);
}

void CallTable::grow() {
  const std::vector<PendingCall*> old = std::move(slots_);
  slots_.assign(std::max(kInitialSlots, 2 * old.size()), nullptr);
  for (PendingCall* call : old) {
    if (call) slots_[slot_of(call->id)] = call;
  }
}

PendingCall* CallTable::find(std::uint64_t id) const noexcept {
  if (slots_.empty()) return nullptr;
  PendingCall* call = slots_[slot_of(id)];
  return call && call->id == id ? call : nullptr;
}

PendingCall* CallTable::remove(std::uint64_t id) noexcept {
  PendingCall* call = find(id);
  if (!call) return nullptr;
  slots_[slot_of(id)] = nullptr;
  if (--count_ == 0 && slots_.size() > kMaxIdleSlots) std::vector<PendingCall*>().swap(slots_);
  return call;
}

void CallTable::abandon(PendingCall& call) {
  if (remove(call.id)) remember_abandoned(call.id);
}

void CallTable::remember_abandoned(std::uint64_t id) {
  if (!abandoned_) abandoned_ = std::make_unique<Abandoned>();
  abandoned_->ids.insert(id);
  abandoned_->order.push(id);
  if (abandoned_->order.size() > kMaxAbandonedIds) {
    abandoned_->ids.erase(abandoned_->order.front());
    abandoned_->order.pop();
  }
}

bool CallTable::erase_abandoned(std::uint64_t id) {
  return abandoned_ && abandoned_->ids.erase(id) > 0;
}

// Scans all calls if the earliest known deadline has passed, otherwise none. Under steady traffic, a scan is
// needed about once per timeout, and no call needs its own timer.
std::vector<std::uint64_t> CallTable::expired_ids(Time now) {
  std::vector<std::uint64_t> ids;
  if (now < next_deadline()) return ids;
  earliest_ = Time::max();
  for (const PendingCall* call : slots_) {
    if (!call) continue;
    if (call->deadline <= now) {
      ids.push_back(call->id);
    } else {
      earliest_ = std::min(earliest_, call->deadline);
    }
  }
  return ids;
}

std::vector<std::uint64_t> CallTable::ids() const {
  std::vector<std::uint64_t> ids;
  for (const PendingCall* call : slots_) {
    if (call) ids.push_back(call->id);
  }
  return ids;
}

}  // namespace fairlead::rpc
