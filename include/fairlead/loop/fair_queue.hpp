// FairQueue: one queue of callbacks per client, served round-robin on a loop. One callback runs at a time,
// and the other callbacks of the loop run in between, so a client with many callbacks delays every other
// client by at most one of them.
#pragma once

#include <cstddef>
#include <functional>
#include <unordered_map>

#include "fairlead/base/fifo.hpp"

namespace fairlead {

class Loop;

// Loop thread only.
class FairQueue {
 public:
  using Callback = std::move_only_function<void()>;
  // Identifies a client by the address of an object that only this client has. Never dereferenced.
  using Client = const void*;

  explicit FairQueue(Loop& loop) : loop_(loop) {}
  FairQueue(const FairQueue&) = delete;

  // Runs `callback` after the callbacks that are queued on the loop now, and after at most one callback of
  // each other client.
  void post(Client client, Callback callback);
  // Returns whether no callbacks are queued. If some are, the current turn should do little and end soon, so
  // that they run.
  bool empty() const noexcept { return order_.empty(); }
  // Destroys the queued callbacks without running them. For the destructor of the loop.
  void clear();

 private:
  void run_next();

  Loop& loop_;
  Fifo<Client> order_;  // the clients with queued callbacks; the first one is served next
  std::unordered_map<Client, Fifo<Callback>> waiting_;  // the queued callbacks of each client
};

}  // namespace fairlead
