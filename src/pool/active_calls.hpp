// ActiveCalls: the calls and leases under way at one upstream. Private to the layer.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/pool/pool.hpp"

namespace fairlead::pool {

class ManagedUpstream;

class ActiveCalls {
 public:
  // What is known of a call. Its maker owns it.
  struct Entry : boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::safe_link>> {
    // `of`, `called` and `sent` outlive it. `sent` is null for a lease.
    Entry(const Target& of, std::string_view called, std::shared_ptr<void> by,
          const mcp::OutgoingRequest* sent)
        : target(of), method(called), caller(std::move(by)), request(sent) {}

    const Target& target;
    std::string_view method;
    std::shared_ptr<void> caller;
    const mcp::OutgoingRequest* request;
    std::uint64_t number = 0;  // given by add(), growing
    boost::intrusive::list_member_hook<> client_hook;
  };

  void add(Entry& call);
  void remove(Entry& call);
  std::size_t size() const noexcept { return calls_.size(); }
  bool empty() const noexcept { return calls_.empty(); }
  // The number of the call that was added last, whether it has ended or not.
  std::uint64_t last_number() const noexcept { return last_number_; }
  // Whether a call is under way that was added as this one or before it.
  bool any_until(std::uint64_t number) const noexcept;
  // No calls but leases.
  bool only_leases() const noexcept;
  // In the order in which they were added.
  std::vector<RunningCall> running() const;
  ClientCalls of_clients() const;
  // The tools that are being called.
  std::set<std::string> tools() const;

  // An upstream that is held is not stopped for being idle.
  void begin_hold() { ++holds_; }
  void end_hold() { --holds_; }
  bool unused() const noexcept { return calls_.empty() && holds_ == 0; }
  void mark_idle(Clock::time_point now) { idle_since_ = now; }
  Clock::time_point idle_since() const noexcept { return idle_since_; }

 private:
  // Calls that have a caller, in the order in which they were added.
  using ClientEntries = boost::intrusive::list<
      Entry, boost::intrusive::member_hook<Entry, boost::intrusive::list_member_hook<>, &Entry::client_hook>>;

  // 1 if `call` and the call before it are not of one session; 0 if they are, or one of them does not exist.
  std::size_t session_changes_at(ClientEntries::const_iterator call) const;

  boost::intrusive::list<Entry> calls_;
  ClientEntries client_calls_;
  std::size_t session_changes_ = 0;  // the sum over client_calls_; 0: all are of one session
  std::size_t holds_ = 0;
  std::uint64_t last_number_ = 0;
  Clock::time_point idle_since_{};
};

// A call under way at an upstream, from before it is sent until it has ended.
class ActiveCall {
 public:
  // `target`, `method` and `request` outlive it. `request` is null for a lease, whose method is empty.
  ActiveCall(std::shared_ptr<ManagedUpstream> at, const Target& target, std::string_view method,
             std::shared_ptr<void> caller, const mcp::OutgoingRequest* request = nullptr);
  ~ActiveCall();
  ActiveCall(const ActiveCall&) = delete;

  ManagedUpstream& upstream() const noexcept { return *upstream_; }
  // Progress has come, or the server has asked something meanwhile: the call has begun to run.
  bool part_seen() const noexcept;
  bool progressed = false;

 private:
  std::shared_ptr<ManagedUpstream> upstream_;
  std::uint64_t questions_before_;
  ActiveCalls::Entry entry_;
};

}  // namespace fairlead::pool
