// CallTable: the calls of a peer that wait for a response. It does no I/O and reads no clock; the caller
// passes the time in. The ids of calls that timed out or were cancelled are remembered for a while as
// abandoned, so that a late response is recognised and never delivered to another call.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "fairlead/base/fifo.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/rpc/id.hpp"
#include "fairlead/rpc/message.hpp"

namespace fairlead::rpc {

// A call that waits for one response. The table does not own it.
class PendingCall {
 public:
  using Time = std::chrono::steady_clock::time_point;

  std::uint64_t id = 0;  // assigned by CallTable::add
  Time deadline = Time::max();

  // One of these is called, once, after the call has been removed from the table.
  virtual void finish(Message&& response) = 0;
  virtual void fail(Error reason) = 0;
  // Called for each progress notification of the remote peer. May change `deadline`.
  virtual void handle_progress(const Message& notification) = 0;

 protected:
  virtual ~PendingCall() = default;
};

class CallTable {
 public:
  using Time = PendingCall::Time;

  // Assigns the next free id, counting up from 1, and adds the call. REQUIRES: `call` is not destroyed before
  // remove() or abandon() has removed it.
  void add(PendingCall& call);
  // Returns nullptr if there is no such call.
  PendingCall* find(std::uint64_t id) const noexcept;
  // Removes the call with this id and returns it. Returns nullptr if there is none.
  PendingCall* remove(std::uint64_t id) noexcept;
  // Removes the call and remembers its id as abandoned. Does nothing if the call is not in the table.
  void abandon(PendingCall& call);
  // Returns true if `id` belongs to an abandoned call, and forgets that id: a late response is expected once.
  bool erase_abandoned(std::uint64_t id);

  // Returns a lower bound of the deadlines of all calls: possibly earlier than the earliest deadline, never
  // later. Time::max() if there are no calls.
  Time next_deadline() const noexcept { return count_ ? earliest_ : Time::max(); }
  // Returns the ids of the calls whose deadline has passed. The calls stay in the table, and the caller must
  // look up and remove each of them by its id: finishing one call can remove others.
  std::vector<std::uint64_t> expired_ids(Time now);
  // Returns the ids of all calls.
  std::vector<std::uint64_t> ids() const;

  std::size_t size() const noexcept { return count_; }

 private:
  std::size_t slot_of(std::uint64_t id) const noexcept { return id & (slots_.size() - 1); }
  void grow();
  void remember_abandoned(std::uint64_t id);

  // A call is stored at index `id mod size`. Ids are assigned in ascending order, so there are no collisions:
  // if an old call still occupies the slot of the next id, that id is skipped. The size is a power of two.
  std::vector<PendingCall*> slots_;
  std::size_t count_ = 0;
  std::uint64_t next_id_ = 1;
  Time earliest_ = Time::max();  // see next_deadline()
  struct Abandoned {
    std::unordered_set<std::uint64_t> ids;
    Fifo<std::uint64_t> order;  // oldest first; the oldest ids are forgotten first
  };
  std::unique_ptr<Abandoned> abandoned_;  // null: no call has been abandoned
};

}  // namespace fairlead::rpc
