// FairQueue: callbacks that wait for a loop in one queue for each client. They run one at a time, of each
// client in turn, with all other callbacks of the loop in between. A client that has left much to do does not
// delay the others by more than one of its callbacks.
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
  // Identifies a client by the address of something that it has for itself. Never dereferenced.
  using Client = const void*;

  explicit FairQueue(Loop& loop) : loop_(loop) {}
  FairQueue(const FairQueue&) = delete;

  // Runs `callback` after the callbacks that wait for the loop now, and after at most one callback of each
  // other client.
  void post(Client client, Callback callback);
  // Whether callbacks wait. A turn that sees one handles as little as it can before it ends.
  bool empty() const noexcept { return order_.empty(); }

 private:
  void run_next();

  Loop& loop_;
  Fifo<Client> order_;  // of those with callbacks: the first is next
  std::unordered_map<Client, Fifo<Callback>> waiting_;
};

}  // namespace fairlead
