// FairWaitQueue: the waiters of a Semaphore, popped round-robin by client, and by session within a client.
// Private to the layer.
#pragma once

#include <cstddef>
#include <iterator>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace fairlead::pool {

class Waiter;

// The keys by which waiting calls are queued: the client, and within it the session, or the address of the
// client's connection if the call has no session. `client` is empty for internal requests of the pool or the
// gateway.
struct CallerKey {
  CallerKey() {}  // NOLINT: not an aggregate, see StreamConnectOptions
  CallerKey(std::string of_client, std::string of_session)
      : client(std::move(of_client)), session(std::move(of_session)) {}

  std::string client;
  std::string session;
};

// Named queues that are served round-robin. An empty queue is removed.
template <class Queue>
class RoundRobin {
 public:
  bool empty() const noexcept { return queues_.empty(); }
  // Returns the queue of that name; adds an empty one at the end if none exists. REQUIRES: the caller then
  // adds an element to an empty queue.
  Queue& get_or_add(const std::string& name) {
    const auto found = index_.find(name);
    if (found != index_.end()) return found->second->second;
    queues_.emplace_back(name, Queue());
    index_.emplace(queues_.back().first, std::prev(queues_.end()));
    return queues_.back().second;
  }
  // REQUIRES: not empty.
  Queue& front() noexcept { return queues_.front().second; }
  // Moves the first queue to the end, or erases it if it is empty. To be called after an element of that
  // queue was removed.
  void rotate() {
    queues_.splice(queues_.end(), queues_, queues_.begin());
    erase_queue_if_empty(std::prev(queues_.end()));
  }
  // Erases the queue of that name if it is empty. To be called after an element of that queue was removed.
  void erase_if_empty(const std::string& name) { erase_queue_if_empty(index_.find(name)->second); }

 private:
  using Queues = std::list<std::pair<const std::string, Queue>>;

  void erase_queue_if_empty(typename Queues::iterator queue) {
    if (!queue->second.empty()) return;
    index_.erase(queue->first);
    queues_.erase(queue);
  }

  Queues queues_;
  std::unordered_map<std::string_view, typename Queues::iterator> index_;
};

class FairWaitQueue {
 public:
  using Waiters = std::list<std::shared_ptr<Waiter>>;
  using Position = Waiters::iterator;

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

  Position push(const CallerKey& caller, std::shared_ptr<Waiter> waiter) {
    Waiters& waiters = clients_.get_or_add(caller.client).get_or_add(caller.session);
    ++size_;
    return waiters.insert(waiters.end(), std::move(waiter));
  }
  // Removes the waiter at `position`, which push() returned for this caller. REQUIRES: pop() has not returned
  // the waiter.
  void remove(const CallerKey& caller, Position position) {
    auto& sessions = clients_.get_or_add(caller.client);
    sessions.get_or_add(caller.session).erase(position);
    sessions.erase_if_empty(caller.session);
    clients_.erase_if_empty(caller.client);
    --size_;
  }
  // Removes and returns the next waiter. REQUIRES: not empty.
  std::shared_ptr<Waiter> pop() {
    auto& sessions = clients_.front();
    Waiters& waiters = sessions.front();
    std::shared_ptr<Waiter> next = std::move(waiters.front());
    waiters.pop_front();
    sessions.rotate();
    clients_.rotate();
    --size_;
    return next;
  }

 private:
  RoundRobin<RoundRobin<Waiters>> clients_;
  std::size_t size_ = 0;
};

}  // namespace fairlead::pool
