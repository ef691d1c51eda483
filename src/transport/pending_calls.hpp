// PendingCalls: a hash table of the calls that wait for a response, by id. The calls are linked into the
// table, so adding and removing one allocates nothing, and removing one compares no ids.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "fairlead/base/id_map.hpp"

namespace fairlead::transport {

template <class Call>
class PendingCalls {
 public:
  // The part of a Call that links it into the table.
  class Link {
   public:
    // Returns whether the call is in the table.
    bool is_pending() const noexcept { return pending_; }

   private:
    friend class PendingCalls;
    bool pending_ = false;
    std::size_t hash_ = 0;
    std::shared_ptr<Call> next_;  // in the same bucket
  };

  PendingCalls() = default;
  PendingCalls(const PendingCalls&) = delete;
  ~PendingCalls() { clear(); }

  // Adds a call; replaces one with the same id. REQUIRES: the call is not in the table; Call is derived from
  // Link, and its member `id` does not change.
  void add(std::shared_ptr<Call> call) {
    Link& link = *call;
    link.hash_ = IdHash()(call->id);
    if (const std::shared_ptr<Call> replaced = find(call->id, link.hash_)) remove(*replaced);
    if (count_ == buckets_.size()) grow();
    link.pending_ = true;
    push(std::move(call));
    ++count_;
  }
  // Returns null if there is none.
  std::shared_ptr<Call> find(std::string_view id) const { return find(id, IdHash()(id)); }
  // Does nothing if the call is not in the table. REQUIRES: the caller holds a reference to the call.
  void remove(Call& call) noexcept {
    Link& link = call;
    if (!std::exchange(link.pending_, false)) return;
    std::shared_ptr<Call>* place = &bucket_of(link);
    while (place->get() != &call) place = &link_of(**place).next_;
    const std::shared_ptr<Call> removed = std::exchange(*place, std::move(link.next_));
    --count_;
  }
  void clear() noexcept {
    for (std::shared_ptr<Call>& bucket : buckets_) {
      while (const std::shared_ptr<Call> first = bucket) remove(*first);
    }
  }

 private:
  static constexpr std::size_t kFirstBuckets = 16;  // a power of two, as all sizes are

  static Link& link_of(Call& call) noexcept { return call; }
  std::shared_ptr<Call> find(std::string_view id, std::size_t hash) const {
    if (count_ == 0) return nullptr;
    const std::shared_ptr<Call>* call = &buckets_[hash & (buckets_.size() - 1)];
    while (*call && (*call)->id != id) call = &link_of(**call).next_;
    return *call;
  }
  std::shared_ptr<Call>& bucket_of(const Link& link) noexcept {
    return buckets_[link.hash_ & (buckets_.size() - 1)];
  }
  void push(std::shared_ptr<Call> call) noexcept {
    std::shared_ptr<Call>& bucket = bucket_of(*call);
    link_of(*call).next_ = std::move(bucket);
    bucket = std::move(call);
  }
  void grow() {
    std::vector<std::shared_ptr<Call>> old(buckets_.empty() ? kFirstBuckets : 2 * buckets_.size());
    old.swap(buckets_);
    for (std::shared_ptr<Call>& bucket : old) {
      while (bucket) {
        std::shared_ptr<Call> call = std::move(bucket);
        bucket = std::move(link_of(*call).next_);
        push(std::move(call));
      }
    }
  }

  std::vector<std::shared_ptr<Call>> buckets_;  // the first call of each bucket; null: the bucket is empty
  std::size_t count_ = 0;
};

}  // namespace fairlead::transport
