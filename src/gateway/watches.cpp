#include "gateway/watches.hpp"

#include <deque>
#include <set>
#include <vector>

#include "fairlead/base/string_map.hpp"
#include "fairlead/rpc/codes.hpp"
#include "gateway/update_queue.hpp"
#include "loop/slices.hpp"

namespace fairlead::gateway {

namespace {

constexpr std::chrono::seconds kRetryDelay{30};  // when an error does not say when to try again

// Visits the URIs that contain `uri`, itself included: servers may tell of a resource inside the one that was
// subscribed to. Returns how many bytes those URIs have together.
template <class Visit>
std::size_t each_containing(std::string_view uri, Visit visit) {
  std::size_t bytes = uri.size();
  visit(uri);
  for (std::size_t end = uri.size(); end-- > 1;) {
    if (uri[end - 1] != '/' && !std::string_view("/?#").contains(uri[end])) continue;
    bytes += end;
    visit(uri.substr(0, end));
  }
  return bytes;
}

}  // namespace

// ---- what there is ---------------------------------------------------------------------------------------

struct Watches::Held : std::enable_shared_from_this<Held> {
  using Subscribers = std::vector<std::shared_ptr<Subscriber>>;

  Held(std::shared_ptr<Watches> owner, pool::Lease lease) : all(std::move(owner)), kept(std::move(lease)) {}
  ~Held() { all->held_.erase(kept.connection().get()); }

  bool lost() const {
    const pool::Upstream& upstream = *kept.upstream();
    return upstream.state() != pool::State::ready || upstream.connection() != kept.connection();
  }
  // Adds the subscribers of `uri` and of those that contain it. Returns what that cost, in bytes read.
  std::size_t collect(std::string_view uri, Subscribers& to) const;
  void collect_all(Subscribers& to) const;
  // Forgets the watch of `uri`, unless there is another one by now.
  void forget_gone(const std::string& uri) {
    const auto found = watches.find(uri);
    if (found != watches.end() && found->second.expired()) watches.erase(found);
  }
  // Ends a subscription at the server, when there are not too many that end already.
  void unsubscribe(std::uint64_t number);
  static Task<void> end_subscriptions(std::shared_ptr<Held> self);

  std::shared_ptr<Watches> all;
  pool::Lease kept;
  StringMap<std::weak_ptr<Watch>> watches;  // by URI
  UpdateQueue updates;
  bool telling = false;
  Slices slices;                     // of telling
  std::deque<std::uint64_t> ending;  // numbers of subscriptions to end at the server
  std::size_t ending_now = 0;        // tasks that end them
};

// Lives with those who hear of it.
struct Watches::Watch {
  Watch(std::shared_ptr<Held> at, std::string resource) : held(std::move(at)), uri(std::move(resource)) {}
  ~Watch() {
    held->forget_gone(uri);
    if (number && !held->all->stopping_ && !held->lost()) held->unsubscribe(*number);
  }

  std::shared_ptr<Held> held;
  std::string uri;
  std::set<Subscriber*> subscribers;
  Event settled;
  std::optional<Error> failed;
  std::optional<std::uint64_t> number;
};

struct Watches::Subscriber : std::enable_shared_from_this<Subscriber> {
  Subscriber(std::shared_ptr<Watches> watches, pool::Target at, PrincipalPtr whose, std::string resource,
             Updated tell);
  ~Subscriber();
  bool wanted() const { return !stop.stop_requested() && !all->stopping_; }
  void set_watch(std::shared_ptr<Watch> next) {
    if (watch) watch->subscribers.erase(this);
    watch = std::move(next);
    if (watch) watch->subscribers.insert(this);
  }

  std::shared_ptr<Watches> all;
  pool::Target target;
  PrincipalPtr client;
  std::string uri;
  Updated updated;
  std::stop_source stop;
  std::shared_ptr<Watch> watch;
  bool settling = false;
  bool again = false;   // what it settles on may be the wrong one by now
  bool queued = false;  // to be subscribed again
};

struct Watches::ServerSubscribers {
  explicit ServerSubscribers(Loop& loop) : retry(loop) {}
  bool unused() const noexcept {
    return subscribers.empty() && settling_again == 0 && !renewing && !checking;
  }
  // Has a subscriber that has lost its upstream, or any with `everybody`, subscribe again.
  void check_one(Subscriber& one, bool everybody);
  // Those that failed are queued again.
  void queue_failed() {
    retry.cancel();
    retry_at = Clock::time_point::max();
    lost.insert(lost.end(), failed.begin(), failed.end());
    failed.clear();
  }
  // The next one that is to be subscribed again; null if there is none.
  std::shared_ptr<Subscriber> next_lost();

  std::set<Subscriber*> subscribers;
  std::deque<std::weak_ptr<Subscriber>> lost;
  std::vector<std::weak_ptr<Subscriber>> failed;  // tried again when `retry` fires, or upstreams change
  Timer retry;
  Clock::time_point retry_at = Clock::time_point::max();  // when it fires
  bool renewing = false;                                  // a task has those that are lost subscribe again
  std::size_t settling_again = 0;                         // that it has begun and that have not ended
  Event settled_again;                                    // one of them has ended
  bool check = false;                                     // the upstreams have changed
  bool check_everybody = false;
  bool checking = false;
};

Watches::Subscriber::Subscriber(std::shared_ptr<Watches> watches, pool::Target at, PrincipalPtr whose,
                                std::string resource, Updated tell)
    : all(std::move(watches)),
      target(std::move(at)),
      client(std::move(whose)),
      uri(std::move(resource)),
      updated(std::move(tell)) {
  all->subscribers_of(target.server).subscribers.insert(this);
}

Watches::Subscriber::~Subscriber() {
  set_watch(nullptr);
  all->subscribers_of(target.server).subscribers.erase(this);
  all->forget_if_unused(target.server);
}

// What a client keeps: with it goes the wish.
struct Watches::Wish {
  explicit Wish(std::shared_ptr<Subscriber> of) : subscriber(std::move(of)) {}
  Wish(const Wish&) = delete;
  ~Wish() {
    subscriber->stop.request_stop();
    subscriber->set_watch(nullptr);
  }

  std::shared_ptr<Subscriber> subscriber;
};

// ---- subscribing -----------------------------------------------------------------------------------------

Task<Result<std::shared_ptr<void>>> Watches::subscribe(pool::Target target, std::string uri,
                                                       std::stop_token stop, Updated updated,
                                                       PrincipalPtr client) {
  auto subscriber = std::make_shared<Subscriber>(shared_from_this(), std::move(target), std::move(client),
                                                 std::move(uri), std::move(updated));
  auto wish = std::make_shared<Wish>(subscriber);
  const std::stop_callback given_up(stop, [&subscriber] { subscriber->stop.request_stop(); });
  Task<Result<void>> settling = settle(subscriber);
  const Result<void> settled = co_await settling;
  if (!settled) co_return settled.error();
  co_return std::shared_ptr<void>(std::move(wish));
}

Task<Result<void>> Watches::settle(std::shared_ptr<Subscriber> subscriber) {
  const auto keep = shared_from_this();
  subscriber->settling = true;
  Result<void> outcome;
  do {
    subscriber->again = false;
    pool::Target target = subscriber->target;
    Task<Result<pool::Lease>> acquiring = pool_->acquire(std::move(target), subscriber->stop.get_token(),
                                                         pool::StartPriority::call, subscriber->client.get());
    Result<pool::Lease> lease = co_await acquiring;
    outcome = lease ? Result<void>() : lease.error();
    if (!lease) continue;
    Task<Result<std::shared_ptr<Watch>>> watching = watch(std::move(*lease), subscriber->uri);
    Result<std::shared_ptr<Watch>> watched = co_await watching;
    outcome = watched ? Result<void>() : watched.error();
    if (watched && subscriber->wanted()) subscriber->set_watch(std::move(*watched));
  } while (subscriber->again && subscriber->wanted());
  subscriber->settling = false;
  co_return outcome;
}

Task<Result<std::shared_ptr<Watches::Watch>>> Watches::watch(pool::Lease lease, std::string uri) {
  // A legacy server is asked even if it does not declare `subscribe`: the Python SDK 1.x never does.
  if (json::View(lease.connection()->server().capabilities)["resources"].absent()) {
    co_return Error::rpc(rpc::kMethodNotFound, "Server `" + lease.upstream()->spec().name +
                                                   "` does not tell of changes of its resources");
  }
  const Result<std::shared_ptr<Held>> holding = hold(lease);
  if (!holding) co_return holding.error();
  const std::shared_ptr<Held> held = *holding;
  if (const auto known = held->watches.find(uri); known != held->watches.end()) {
    const std::shared_ptr<Watch> watch = known->second.lock();
    const bool settled = co_await watch->settled.wait(loop_, Clock::duration::max());
    static_cast<void>(settled);
    if (watch->failed) co_return *watch->failed;
    co_return watch;
  }
  const auto watch = std::make_shared<Watch>(held, uri);
  held->watches[uri] = watch;
  mcp::ListenFilter filter;
  filter.uris.push_back(uri);
  Task<Result<std::uint64_t>> subscribing = lease.connection()->subscribe(std::move(filter));
  const Result<std::uint64_t> number = co_await subscribing;
  if (number) {
    watch->number = *number;
  } else {
    watch->failed = number.error();
    held->watches.erase(uri);  // those who wait for it keep it; the next subscriber asks again
  }
  watch->settled.set();
  if (watch->failed) co_return *watch->failed;
  co_return watch;
}

// Holds the upstream without a lease, which would count as a call for as long as the subscription lasts.
Result<std::shared_ptr<Watches::Held>> Watches::hold(const pool::Lease& lease) {
  std::weak_ptr<Held>& known = held_[lease.connection().get()];
  if (std::shared_ptr<Held> held = known.lock()) return held;
  Result<pool::Lease> kept = pool_->hold(lease.upstream());
  if (!kept) {
    held_.erase(lease.connection().get());
    return kept.error();
  }
  auto held = std::make_shared<Held>(shared_from_this(), std::move(*kept));
  known = held;
  return held;
}

// ---- updates ---------------------------------------------------------------------------------------------

void Watches::tell(const pool::Upstream& upstream, const std::string& uri) {
  if (stopping_) return;
  const auto found = held_.find(upstream.connection().get());
  const std::shared_ptr<Held> held = found == held_.end() ? nullptr : found->second.lock();
  if (!held) return;
  held->updates.push(uri);
  if (!std::exchange(held->telling, true)) loop_.spawn(tell_updates(held));
}

Task<void> Watches::tell_updates(std::shared_ptr<Held> held) {
  Loop& loop = held->all->loop_;
  while (!held->updates.empty()) {
    const std::optional<std::string> uri = held->updates.pop();
    Held::Subscribers told;  // kept: they may go while they are told
    const std::size_t cost = uri ? held->collect(*uri, told) : 0;
    if (!uri) held->collect_all(told);
    for (const std::shared_ptr<Subscriber>& one : told) {
      const std::string& changed = uri ? *uri : one->uri;
      if (one->wanted()) one->updated(changed);
      if (held->slices.due(changed.size())) co_await sleep_for(loop, Slices::kPause);
    }
    if (held->slices.due(cost)) co_await sleep_for(loop, Slices::kPause);
  }
  held->telling = false;
}

std::size_t Watches::Held::collect(std::string_view uri, Subscribers& to) const {
  return each_containing(uri, [&](std::string_view whole) {
    const auto found = watches.find(whole);
    const std::shared_ptr<Watch> watch = found == watches.end() ? nullptr : found->second.lock();
    if (!watch) return;
    for (Subscriber* const one : watch->subscribers) to.push_back(one->shared_from_this());
  });
}

void Watches::Held::collect_all(Subscribers& to) const {
  for (const auto& [uri, weak] : watches) {
    const std::shared_ptr<Watch> watch = weak.lock();
    if (!watch) continue;
    for (Subscriber* const one : watch->subscribers) to.push_back(one->shared_from_this());
  }
}

// ---- subscribing again -----------------------------------------------------------------------------------

Watches::ServerSubscribers& Watches::subscribers_of(const std::string& server) {
  std::shared_ptr<ServerSubscribers>& all = servers_[server];
  if (!all) all = std::make_shared<ServerSubscribers>(loop_);
  return *all;
}

std::shared_ptr<Watches::Subscriber> Watches::ServerSubscribers::next_lost() {
  while (!lost.empty()) {
    const std::shared_ptr<Subscriber> next = lost.front().lock();
    lost.pop_front();
    if (next) next->queued = false;
    if (next && next->wanted() && !next->settling) return next;
  }
  return nullptr;
}

void Watches::renew(const std::string& server, bool everybody) {
  const auto found = servers_.find(server);
  if (stopping_ || found == servers_.end()) return;
  ServerSubscribers& all = *found->second;
  all.check = true;
  all.check_everybody = all.check_everybody || everybody;
  all.queue_failed();
  if (!std::exchange(all.checking, true)) loop_.spawn(check_subscribers(shared_from_this(), server));
}

Task<void> Watches::check_subscribers(std::shared_ptr<Watches> self, std::string server) {
  const std::shared_ptr<ServerSubscribers> all = self->servers_.at(server);
  Slices slices;
  while (std::exchange(all->check, false)) {
    const bool everybody = std::exchange(all->check_everybody, false);
    Subscriber* last = nullptr;
    while (!self->stopping_) {
      const auto next = all->subscribers.upper_bound(last);
      if (next == all->subscribers.end()) break;
      last = *next;
      all->check_one(*last, everybody);
      if (!slices.due(0)) continue;
      self->start_renewing(server);
      co_await sleep_for(self->loop_, Slices::kPause);
    }
  }
  all->checking = false;
  self->start_renewing(server);
  self->forget_if_unused(server);
}

void Watches::ServerSubscribers::check_one(Subscriber& one, bool everybody) {
  const bool is_lost = !one.watch || one.watch->held->lost();
  // Nothing may keep from stopping what is to be stopped.
  if (is_lost) one.set_watch(nullptr);
  if (!is_lost && !everybody) return;
  one.again = true;
  if (!one.settling && !std::exchange(one.queued, true)) lost.push_back(one.weak_from_this());
}

void Watches::forget_if_unused(const std::string& server) {
  const auto found = servers_.find(server);
  if (found != servers_.end() && found->second->unused()) servers_.erase(found);
}

void Watches::start_renewing(const std::string& server) {
  const auto all = servers_.find(server);
  if (all == servers_.end() || all->second->lost.empty()) return;
  if (!std::exchange(all->second->renewing, true)) loop_.spawn(renew_lost(shared_from_this(), server));
}

// One task begins with all of them: when many wait for the same subscription and it is made, those that
// remain are still done in slices.
Task<void> Watches::renew_lost(std::shared_ptr<Watches> self, std::string server) {
  const std::shared_ptr<ServerSubscribers> all = self->servers_.at(server);
  Slices slices;
  while (true) {
    const std::shared_ptr<Subscriber> next = all->next_lost();
    if (!next) break;
    ++all->settling_again;
    self->loop_.spawn(settle_again(self, all, next));
    if (slices.due(next->uri.size())) co_await sleep_for(self->loop_, Slices::kPause);
    while (all->settling_again >= kMaxAtOnce) {
      all->settled_again.reset();
      const bool ended = co_await all->settled_again.wait(self->loop_, Clock::duration::max());
      static_cast<void>(ended);
    }
  }
  all->renewing = false;
  self->forget_if_unused(server);
}

Task<void> Watches::settle_again(std::shared_ptr<Watches> self, std::shared_ptr<ServerSubscribers> all,
                                 std::shared_ptr<Subscriber> subscriber) {
  const std::shared_ptr<Watch> before = subscriber->watch;
  Task<Result<void>> settling = self->settle(subscriber);
  const Result<void> settled = co_await settling;
  if (subscriber->wanted()) {
    if (!settled) self->on_not_renewed(subscriber, settled.error());
    if (settled && subscriber->watch != before)
      subscriber->updated(subscriber->uri);  // updates may have been missed
  }
  --all->settling_again;
  all->settled_again.set();
}

void Watches::on_not_renewed(const std::shared_ptr<Subscriber>& subscriber, const Error& error) {
  log_limit_.write(
      log_, LogLevel::warning, "cannot subscribe again",
      {{"server", subscriber->target.server}, {"uri", subscriber->uri}, {"reason", error.message()}});
  if (error.kind() != ErrorKind::remote) retry_later(subscriber, error);
}

void Watches::retry_later(const std::shared_ptr<Subscriber>& subscriber, const Error& error) {
  const std::string server = subscriber->target.server;
  ServerSubscribers& all = subscribers_of(server);
  subscriber->queued = true;
  all.failed.push_back(subscriber);
  const Clock::time_point when = Clock::now() + error.detail().retry_after.value_or(kRetryDelay);
  if (when >= all.retry_at) return;
  all.retry_at = when;
  all.retry.arm(when, [weak = weak_from_this(), server] {
    const auto self = weak.lock();
    if (!self || self->stopping_) return;
    self->subscribers_of(server).queue_failed();
    self->start_renewing(server);
  });
}

void Watches::stop() {
  stopping_ = true;
  for (const auto& [server, all] : servers_) {
    for (Subscriber* const one : all->subscribers) {
      if (one->settling) one->stop.request_stop();
    }
  }
}

// ---- unsubscribing ---------------------------------------------------------------------------------------

void Watches::Held::unsubscribe(std::uint64_t number) {
  ending.push_back(number);
  if (ending_now >= kMaxAtOnce) return;
  ++ending_now;
  all->loop_.spawn(end_subscriptions(shared_from_this()));
}

Task<void> Watches::Held::end_subscriptions(std::shared_ptr<Held> self) {
  Slices slices;
  while (!self->ending.empty() && !self->lost()) {
    const std::uint64_t number = self->ending.front();
    self->ending.pop_front();
    Task<Result<void>> ending = self->kept.connection()->unsubscribe(number);
    const Result<void> ended = co_await ending;
    static_cast<void>(ended);  // a server that is gone has forgotten it
    if (slices.due(0)) co_await sleep_for(self->all->loop_, Slices::kPause);
  }
  --self->ending_now;
}

}  // namespace fairlead::gateway
