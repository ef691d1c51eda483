// Watches: who has subscribed to which resource, and the one subscription at the right upstream by which they
// all hear of it. They stay subscribed when an upstream is lost or replaced, or when a server that was shared
// is not any more. Work for many subscribers is done in slices (loop/slices.hpp). Private to the layer.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "fairlead/base/log.hpp"
#include "fairlead/base/log_rate_limit.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/pool/pool.hpp"

namespace fairlead::gateway {

class Watches : public std::enable_shared_from_this<Watches> {
 public:
  using Updated = std::function<void(const std::string& uri)>;

  // Requests of each kind that one server is sent at once: subscriptions that are made again, and those that
  // end.
  static constexpr std::size_t kMaxAtOnce = 64;

  Watches(Loop& loop, std::shared_ptr<pool::Pool> pool, Log log)
      : loop_(loop), pool_(std::move(pool)), log_(std::move(log)) {}

  // Ends when the server has it. Lasts for as long as what it yields is kept. While it waits for the server,
  // then or when it is made again, it counts as a waiting call of `client` (null: of no client).
  Task<Result<std::shared_ptr<void>>> subscribe(pool::Target target, std::string uri, std::stop_token stop,
                                                Updated updated, PrincipalPtr client = nullptr);
  // An upstream says that a resource has changed. Called on the loop, a few subscribers are told before it
  // returns; many are told in slices.
  void tell(const pool::Upstream& upstream, const std::string& uri);
  // The upstreams of a server are not what they were: whoever has lost theirs subscribes again; with
  // `everybody`, those too whose upstream is as it was but perhaps not theirs any more.
  void renew(const std::string& server, bool everybody = false);
  // From now on nobody is told or subscribed, without a word to the servers: they are about to be stopped.
  void stop();

 private:
  struct Held;               // an upstream, kept running
  struct Watch;              // one resource of one upstream
  struct Subscriber;         // one who wants to hear of it
  struct Wish;               // what keeps it so
  struct ServerSubscribers;  // those of one server, and which of them are to be subscribed again

  Task<Result<void>> settle(std::shared_ptr<Subscriber> subscriber);
  Task<Result<std::shared_ptr<Watch>>> watch(pool::Lease lease, std::string uri);
  Result<std::shared_ptr<Held>> hold(const pool::Lease& lease);
  static Task<void> tell_updates(std::shared_ptr<Held> held);

  ServerSubscribers& subscribers_of(const std::string& server);
  void forget_if_unused(const std::string& server);
  static Task<void> check_subscribers(std::shared_ptr<Watches> self, std::string server);
  void start_renewing(const std::string& server);
  static Task<void> renew_lost(std::shared_ptr<Watches> self, std::string server);
  static Task<void> settle_again(std::shared_ptr<Watches> self, std::shared_ptr<ServerSubscribers> all,
                                 std::shared_ptr<Subscriber> subscriber);
  void on_not_renewed(const std::shared_ptr<Subscriber>& subscriber, const Error& error);
  void retry_later(const std::shared_ptr<Subscriber>& subscriber, const Error& error);

  Loop& loop_;
  std::shared_ptr<pool::Pool> pool_;
  Log log_;
  LogRateLimit log_limit_;
  std::map<std::string, std::shared_ptr<ServerSubscribers>> servers_;  // by name
  std::map<const pool::UpstreamConnection*, std::weak_ptr<Held>> held_;
  bool stopping_ = false;
};

}  // namespace fairlead::gateway
