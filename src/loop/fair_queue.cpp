#include "fairlead/loop/fair_queue.hpp"

#include "fairlead/loop/loop.hpp"

namespace fairlead {

void FairQueue::post(Client client, Callback callback) {
  Fifo<Callback>& callbacks = waiting_[client];
  const bool first = order_.empty();
  if (callbacks.empty()) order_.push(client);
  callbacks.push(std::move(callback));
  if (first) loop_.post([this] { run_next(); });
}

void FairQueue::clear() {
  // The destructor of a callback may post another one.
  while (!waiting_.empty()) const auto discarded = std::exchange(waiting_, {});
  order_.clear();
}

// Runs one callback. Posts itself for the next callback first, so that the queue continues even if the
// callback throws.
void FairQueue::run_next() {
  const Client client = order_.front();
  order_.pop();
  const auto found = waiting_.find(client);
  Callback callback = std::move(found->second.front());
  found->second.pop();
  if (found->second.empty()) {
    waiting_.erase(found);
  } else {
    order_.push(client);
  }
  if (!order_.empty()) loop_.post([this] { run_next(); });
  callback();
}

}  // namespace fairlead
