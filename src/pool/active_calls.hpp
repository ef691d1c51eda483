// ActiveCalls: the active calls and leases of one upstream. Private to the layer.
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
  // A call or a lease. Owned by the caller of add(), which must remove() it before destroying it.
  struct Entry : boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::safe_link>> {
    // The target, the method and the request must outlive the entry. The request is null for a lease.
    Entry(const Target& call_target, std::string_view call_method, std::shared_ptr<void> context,
          const mcp::ForwardedRequest* call_request)
        : target(call_target), method(call_method), call_context(std::move(context)), request(call_request) {}

    const Target& target;
    std::string_view method;
    std::shared_ptr<void> call_context;
    const mcp::ForwardedRequest* request;
    std::uint64_t number = 0;                          // assigned by add(), in increasing order
    boost::intrusive::list_member_hook<> client_hook;  // links the entry in client_calls_
  };

  void add(Entry& call);
  void remove(Entry& call);
  std::size_t size() const noexcept { return calls_.size(); }
  bool empty() const noexcept { return calls_.empty(); }
  // The number of the call that was added last, whether it has ended or not.
  std::uint64_t last_number() const noexcept { return last_number_; }
  // Returns whether a call with this number or a lower one is still active.
  bool any_up_to(std::uint64_t number) const noexcept;
  // Returns true if there are no calls other than leases.
  bool only_leases() const noexcept;
  // Returns the active calls in the order in which they were added.
  std::vector<ActiveCallInfo> infos() const;
  ClientCallSummary client_call_summary() const;
  // Returns the names of the tools that are being called.
  std::set<std::string> called_tools() const;

  // Count the leases of Pool::keep_alive(). While there is one, the upstream is neither stopped for being
  // idle nor evicted.
  void add_keep_alive() { ++keep_alive_count_; }
  void remove_keep_alive() { --keep_alive_count_; }
  // Returns whether there is neither a call nor a lease.
  bool unused() const noexcept { return calls_.empty() && keep_alive_count_ == 0; }
  // To be called when unused() becomes true.
  void mark_idle(Clock::time_point now) { idle_since_ = now; }
  Clock::time_point idle_since() const noexcept { return idle_since_; }

 private:
  // The calls that have a call context, in the order in which they were added.
  using ClientEntries = boost::intrusive::list<
      Entry, boost::intrusive::member_hook<Entry, boost::intrusive::list_member_hook<>, &Entry::client_hook>>;

  // Returns 1 if `call` and the call before it belong to different sessions; 0 if they belong to one session
  // or one of them does not exist.
  std::size_t session_changes_at(ClientEntries::const_iterator call) const;

  boost::intrusive::list<Entry> calls_;
  ClientEntries client_calls_;
  // The sum of session_changes_at() over client_calls_. If it is 0, all calls belong to one session.
  std::size_t session_changes_ = 0;
  std::size_t keep_alive_count_ = 0;
  std::uint64_t last_number_ = 0;
  Clock::time_point idle_since_{};
};

// Registers a call or lease in the ActiveCalls of an upstream for its lifetime: from before the call is sent
// until it has ended.
class ActiveCall {
 public:
  // REQUIRES: `target`, `method` and `request` outlive this object. For a lease `request` is null and
  // `method` empty.
  ActiveCall(std::shared_ptr<ManagedUpstream> upstream, const Target& target, std::string_view method,
             std::shared_ptr<void> call_context, const mcp::ForwardedRequest* request = nullptr);
  ~ActiveCall();
  ActiveCall(const ActiveCall&) = delete;

  ManagedUpstream& upstream() const noexcept { return *upstream_; }
  // Returns whether the server is known to have begun the call: progress of the call was received, or the
  // server has sent a request since the call was sent.
  bool server_has_begun() const noexcept;
  bool progressed = false;  // progress of the call was received

 private:
  std::shared_ptr<ManagedUpstream> upstream_;
  std::uint64_t server_request_count_before_;
  ActiveCalls::Entry entry_;
};

}  // namespace fairlead::pool
