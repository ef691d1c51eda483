// Watches: who has subscribed to which resource, and the one subscription at the right upstream by which they
// all hear of it. They stay subscribed when an upstream is lost or replaced, or when a server that was shared
// is not any more. Private to the layer.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "fairlead/base/log.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/pool/pool.hpp"

namespace fairlead::gateway {

class Watches : public std::enable_shared_from_this<Watches> {
 public:
  using Updated = std::function<void(const std::string& uri)>;

  Watches(Loop& loop, std::shared_ptr<pool::Pool> pool, Log log)
      : loop_(loop), pool_(std::move(pool)), log_(std::move(log)) {}

  // Ends when the server has it. Lasts for as long as what it yields is kept.
  Task<Result<std::shared_ptr<void>>> subscribe(pool::Target target, std::string uri, std::stop_token stop,
                                                Updated updated);
  // An upstream says that a resource has changed.
  void tell(const pool::Upstream& upstream, const std::string& uri);
  // The upstreams of a server are not what they were: whoever has lost theirs subscribes again; with
  // `everybody`, those too whose upstream is as it was but perhaps not theirs any more.
  void renew(const std::string& server, bool everybody = false);
  // Lets go of everything, without a word to the servers: they are about to be stopped.
  void stop();

 private:
  struct Held;        // an upstream, kept running
  struct Watch;       // one resource of one upstream
  struct Subscriber;  // one who wants to hear of it
  struct Wish;        // what keeps it so
  using Key = std::pair<const pool::UpstreamConnection*, std::string>;

  Task<Result<void>> settle(std::shared_ptr<Subscriber> subscriber);
  Task<Result<std::shared_ptr<Watch>>> watch(pool::Lease lease, std::string uri);
  static Task<void> settle_again(std::shared_ptr<Watches> self, std::shared_ptr<Subscriber> subscriber);
  static Task<void> unsubscribe(std::shared_ptr<Held> held, std::uint64_t number);

  Loop& loop_;
  std::shared_ptr<pool::Pool> pool_;
  Log log_;
  std::set<Subscriber*> subscribers_;
  std::map<const pool::UpstreamConnection*, std::weak_ptr<Held>> held_;
  std::map<Key, std::weak_ptr<Watch>> watches_;
  bool stopping_ = false;
};

}  // namespace fairlead::gateway
