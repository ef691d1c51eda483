// FairLine: those who wait at a Gate. They are called of each client in turn, and of the sessions of a client
// in turn. Private to the layer.
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

// Whose call waits: a client's, and which of its sessions or connections it came from. Both are empty for
// the pool's own.
struct Caller {
  Caller() {}  // NOLINT: not an aggregate, see ConnectOptions
  Caller(std::string of_client, std::string of_session)
      : client(std::move(of_client)), session(std::move(of_session)) {}

  std::string client;
  std::string session;
};

// Queues by name, taken from in turn. None of them is empty.
template <class Queue>
class Rotation {
 public:
  bool empty() const noexcept { return queues_.empty(); }
  // The queue of that name. A new one is last; the caller puts something into it.
  Queue& at(const std::string& name) {
    const auto found = index_.find(name);
    if (found != index_.end()) return found->second->second;
    queues_.emplace_back(name, Queue());
    index_.emplace(queues_.back().first, std::prev(queues_.end()));
    return queues_.back().second;
  }
  // REQUIRES: not empty.
  Queue& first() noexcept { return queues_.front().second; }
  // The first queue, of which one was taken, becomes the last one.
  void next() {
    queues_.splice(queues_.end(), queues_, queues_.begin());
    remove_if_empty(std::prev(queues_.end()));
  }
  // To be called when one was removed from the queue of that name.
  void removed_from(const std::string& name) { remove_if_empty(index_.find(name)->second); }

 private:
  using Queues = std::list<std::pair<const std::string, Queue>>;

  void remove_if_empty(typename Queues::iterator queue) {
    if (!queue->second.empty()) return;
    index_.erase(queue->first);
    queues_.erase(queue);
  }

  Queues queues_;
  std::unordered_map<std::string_view, typename Queues::iterator> index_;
};

class FairLine {
 public:
  using Waiters = std::list<std::shared_ptr<Waiter>>;
  using Place = Waiters::iterator;

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

  Place push(const Caller& caller, std::shared_ptr<Waiter> waiter) {
    Waiters& waiters = clients_.at(caller.client).at(caller.session);
    ++size_;
    return waiters.insert(waiters.end(), std::move(waiter));
  }
  // `place` is what push() returned for this caller. REQUIRES: pop() has not returned it.
  void remove(const Caller& caller, Place place) {
    auto& sessions = clients_.at(caller.client);
    sessions.at(caller.session).erase(place);
    sessions.removed_from(caller.session);
    clients_.removed_from(caller.client);
    --size_;
  }
  // The next one. REQUIRES: not empty.
  std::shared_ptr<Waiter> pop() {
    auto& sessions = clients_.first();
    Waiters& waiters = sessions.first();
    std::shared_ptr<Waiter> next = std::move(waiters.front());
    waiters.pop_front();
    sessions.next();
    clients_.next();
    --size_;
    return next;
  }

 private:
  Rotation<Rotation<Waiters>> clients_;
  std::size_t size_ = 0;
};

}  // namespace fairlead::pool
