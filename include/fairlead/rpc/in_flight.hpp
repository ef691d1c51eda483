// InFlight: our calls that wait for an answer. Plain state without clock or I/O: events go in, calls to
// finish come out. A call that timed out or was given up is remembered for a while as abandoned, so that its
// late answer is recognised and never given to anyone else.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_set>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/rpc/id.hpp"
#include "fairlead/rpc/message.hpp"

namespace fairlead::rpc {

// Something that waits for one answer. It is not owned by the table.
class PendingCall {
 public:
  using Time = std::chrono::steady_clock::time_point;

  std::uint64_t id = 0;  // given by InFlight::add
  Time deadline = Time::max();

  // Called once, after the call has left the table.
  virtual void finish(Result<Message> outcome) = 0;
  // The other side reports progress. The deadline may be moved here.
  virtual void progress(const Message& notification) = 0;

 protected:
  virtual ~PendingCall() = default;
};

class InFlight {
 public:
  using Time = PendingCall::Time;

  // Gives the call the next free id, counting up from 1, and keeps it until it is taken or abandoned.
  void add(PendingCall& call);
  PendingCall* find(std::uint64_t id) const noexcept;
  // Removes and returns the call an answer belongs to; nullptr when there is none.
  PendingCall* take(std::uint64_t id) noexcept;
  // Removes the call and remembers its id.
  void abandon(PendingCall& call);
  // Whether an answer that fits no call is the late one of an abandoned call; true once per call.
  bool was_abandoned(std::uint64_t id);

  // Nothing expires before this. It may be earlier than the earliest deadline, never later.
  Time next_deadline() const noexcept { return count_ ? earliest_ : Time::max(); }
  // The ids of the calls whose deadline has passed, and of all calls. They stay in the table: finishing one
  // call may make others go away, so whoever finishes them takes them one by one.
  std::vector<std::uint64_t> expired(Time now);
  std::vector<std::uint64_t> ids() const;

  std::size_t size() const noexcept { return count_; }

 private:
  std::size_t slot(std::uint64_t id) const noexcept { return id & (slots_.size() - 1); }
  void grow();
  void remember(std::uint64_t id);

  // Ids are handed out in order, so `id mod size` is a perfect place: where an old call still sits in the
  // place of the next id, that id is passed over.
  std::vector<PendingCall*> slots_;
  std::size_t count_ = 0;
  std::uint64_t next_id_ = 1;
  Time earliest_ = Time::max();
  std::unordered_set<std::uint64_t> abandoned_;
  std::deque<std::uint64_t> abandoned_order_;
};

}  // namespace fairlead::rpc
