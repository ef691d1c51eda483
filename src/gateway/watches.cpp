#include "gateway/watches.hpp"

#include <vector>

#include "fairlead/rpc/codes.hpp"

namespace fairlead::gateway {

struct Watches::Held {
  Held(std::shared_ptr<Watches> watches, pool::Lease lease)
      : all(std::move(watches)), kept(std::move(lease)) {}
  ~Held() { all->held_.erase(kept.connection().get()); }

  std::shared_ptr<Watches> all;
  pool::Lease kept;
};

// Lives with those who hear of it.
struct Watches::Watch {
  Watch(std::shared_ptr<Held> at, std::string resource) : held(std::move(at)), uri(std::move(resource)) {}
  ~Watch() {
    Watches& all = *held->all;
    all.watches_.erase(Key(held->kept.connection().get(), uri));
    if (number && !all.stopping_) all.loop_.spawn(unsubscribe(held, *number));
  }
  bool lost() const {
    const pool::Upstream& upstream = *held->kept.upstream();
    return upstream.state() != pool::State::ready || upstream.connection() != held->kept.connection();
  }

  std::shared_ptr<Held> held;
  std::string uri;
  Event settled;
  std::optional<Error> failed;
  std::optional<std::uint64_t> number;
};

struct Watches::Subscriber : std::enable_shared_from_this<Subscriber> {
  Subscriber(std::shared_ptr<Watches> watches, pool::Target at, std::string resource, Updated tell)
      : all(std::move(watches)), target(std::move(at)), uri(std::move(resource)), updated(std::move(tell)) {
    all->subscribers_.insert(this);
  }
  ~Subscriber() { all->subscribers_.erase(this); }
  bool wanted() const { return !stop.stop_requested() && !all->stopping_; }

  std::shared_ptr<Watches> all;
  pool::Target target;
  std::string uri;
  Updated updated;
  std::stop_source stop;
  std::shared_ptr<Watch> watch;
  bool settling = false;
  bool again = false;  // what it settles on may be the wrong one by now
  Event poked;         // it need not wait any longer before it tries again
};

// What a client keeps: with it goes the wish.
struct Watches::Wish {
  explicit Wish(std::shared_ptr<Subscriber> of) : subscriber(std::move(of)) {}
  Wish(const Wish&) = delete;
  ~Wish() {
    subscriber->stop.request_stop();
    subscriber->watch.reset();
    subscriber->poked.set();
  }

  std::shared_ptr<Subscriber> subscriber;
};

namespace {

constexpr std::chrono::seconds kPause{30};  // before a server that cannot be reached is tried again

// Servers may tell of a resource inside the one that was subscribed to.
bool inside(std::string_view uri, std::string_view whole) {
  if (!uri.starts_with(whole)) return false;
  return uri.size() == whole.size() || whole.ends_with('/') ||
         std::string_view("/?#").contains(uri[whole.size()]);
}

}  // namespace

Task<Result<std::shared_ptr<void>>> Watches::subscribe(pool::Target target, std::string uri,
                                                       std::stop_token stop, Updated updated) {
  auto subscriber =
      std::make_shared<Subscriber>(shared_from_this(), std::move(target), std::move(uri), std::move(updated));
  auto wish = std::make_shared<Wish>(subscriber);
  const std::stop_callback given_up(stop, [&subscriber] { subscriber->stop.request_stop(); });
  Task<Result<void>> settling = settle(subscriber);
  const Result<void> settled = co_await settling;
  if (!settled) co_return settled.error();
  co_return std::shared_ptr<void>(std::move(wish));
}

void Watches::tell(const pool::Upstream& upstream, const std::string& uri) {
  std::vector<std::shared_ptr<Subscriber>> told;  // kept: they may go while they are told
  for (Subscriber* const one : subscribers_) {
    if (one->watch && one->watch->held->kept.upstream().get() == &upstream && inside(uri, one->uri))
      told.push_back(one->shared_from_this());
  }
  for (const std::shared_ptr<Subscriber>& one : told) {
    if (one->wanted()) one->updated(uri);
  }
}

void Watches::renew(const std::string& server, bool everybody) {
  if (stopping_) return;
  std::vector<std::shared_ptr<Subscriber>> concerned;
  for (Subscriber* const one : subscribers_) {
    if (one->target.server != server) continue;
    const bool lost = !one->watch || one->watch->lost();
    // Nothing may keep from stopping what is to be stopped.
    if (lost) one->watch.reset();
    if (lost || everybody) concerned.push_back(one->shared_from_this());
  }
  for (std::shared_ptr<Subscriber>& one : concerned) {
    one->again = true;
    one->poked.set();
    if (!one->settling) loop_.spawn(settle_again(shared_from_this(), std::move(one)));
  }
}

void Watches::stop() {
  stopping_ = true;
  for (Subscriber* const one : subscribers_) {
    one->watch.reset();
    one->stop.request_stop();
  }
}

// ---- settling --------------------------------------------------------------------------------------------

Task<Result<void>> Watches::settle(std::shared_ptr<Subscriber> subscriber) {
  const auto keep = shared_from_this();
  subscriber->settling = true;
  Result<void> outcome;
  do {
    subscriber->again = false;
    pool::Target target = subscriber->target;
    Task<Result<pool::Lease>> acquiring = pool_->acquire(std::move(target), subscriber->stop.get_token());
    Result<pool::Lease> lease = co_await acquiring;
    outcome = lease ? Result<void>() : lease.error();
    if (!lease) continue;
    Task<Result<std::shared_ptr<Watch>>> watching = watch(std::move(*lease), subscriber->uri);
    Result<std::shared_ptr<Watch>> watched = co_await watching;
    outcome = watched ? Result<void>() : watched.error();
    if (watched && subscriber->wanted()) subscriber->watch = std::move(*watched);
  } while (subscriber->again && subscriber->wanted());
  subscriber->settling = false;
  co_return outcome;
}

Task<Result<std::shared_ptr<Watches::Watch>>> Watches::watch(pool::Lease lease, std::string uri) {
  const std::shared_ptr<pool::UpstreamConnection> connection = lease.connection();
  if (const auto known = watches_.find(Key(connection.get(), uri)); known != watches_.end()) {
    const std::shared_ptr<Watch> watch = known->second.lock();
    const bool settled = co_await watch->settled.wait(loop_, Clock::duration::max());
    static_cast<void>(settled);
    if (watch->failed) co_return *watch->failed;
    co_return watch;
  }
  // A legacy server is asked even if it does not declare `subscribe`: the Python SDK 1.x never does.
  if (json::View(connection->server().capabilities)["resources"].absent()) {
    co_return Error::rpc(rpc::kMethodNotFound, "Server `" + lease.upstream()->spec().name +
                                                   "` does not tell of changes of its resources");
  }
  const auto known = held_.find(connection.get());
  std::shared_ptr<Held> held = known == held_.end() ? nullptr : known->second.lock();
  if (!held) {
    // The lease would count as a call for as long as somebody listens.
    Result<pool::Lease> hold = pool_->hold(lease.upstream());
    if (!hold) co_return hold.error();
    held = std::make_shared<Held>(shared_from_this(), std::move(*hold));
    held_[connection.get()] = held;
  }
  const auto watch = std::make_shared<Watch>(held, uri);
  watches_[Key(connection.get(), uri)] = watch;
  mcp::ListenFilter filter;
  filter.uris.push_back(uri);
  Task<Result<std::uint64_t>> subscribing = connection->subscribe(std::move(filter));
  const Result<std::uint64_t> number = co_await subscribing;
  if (number) {
    watch->number = *number;
  } else {
    watch->failed = number.error();
  }
  watch->settled.set();
  if (watch->failed) co_return *watch->failed;
  co_return watch;
}

Task<void> Watches::settle_again(std::shared_ptr<Watches> self, std::shared_ptr<Subscriber> subscriber) {
  const std::shared_ptr<Watch> before = subscriber->watch;
  while (subscriber->wanted()) {
    Task<Result<void>> settling = self->settle(subscriber);
    const Result<void> settled = co_await settling;
    if (!subscriber->wanted()) co_return;
    if (settled) break;
    const Error& error = settled.error();
    self->log_.warning(
        "cannot subscribe again",
        {{"server", subscriber->target.server}, {"uri", subscriber->uri}, {"reason", error.message()}});
    if (error.kind() == ErrorKind::remote) co_return;
    subscriber->settling = true;
    subscriber->poked.reset();
    const Clock::duration pause = error.detail().retry_after.value_or(kPause);
    const bool poked = co_await subscriber->poked.wait(self->loop_, pause);
    static_cast<void>(poked);
    subscriber->settling = false;
  }
  // Nobody knows what has been missed.
  if (subscriber->wanted() && subscriber->watch != before) subscriber->updated(subscriber->uri);
}

Task<void> Watches::unsubscribe(std::shared_ptr<Held> held, std::uint64_t number) {
  Task<Result<void>> letting_go = held->kept.connection()->unsubscribe(number);
  const Result<void> done = co_await letting_go;
  static_cast<void>(done);  // a server that is gone has forgotten it
}

}  // namespace fairlead::gateway
