#include "http/server_core.hpp"

#include <algorithm>

#include "fairlead/loop/timer.hpp"
#include "http/server_connection.hpp"
#include "loop/slices.hpp"

namespace fairlead::http {

namespace {

constexpr std::chrono::milliseconds kGrain{50};  // between two checks of the deadlines
// At most so many connections expire in one turn; the others follow in the next turn.
constexpr std::size_t kExpiredPerTurn = 500;

}  // namespace

void Routes::add(std::string path, Handler handler) {
  const bool below = path.ends_with("/*");
  if (below) path.pop_back();
  std::erase_if(routes_, [&](const Route& route) { return route.path == path && route.below == below; });
  const auto before = std::ranges::find_if(routes_, [&](const Route& route) {
    return route.path.size() < path.size() || (route.path == path && route.below);
  });
  routes_.insert(before, Route{std::move(path), below, std::make_shared<const Handler>(std::move(handler))});
}

std::shared_ptr<const Handler> Routes::find(std::string_view path) const {
  const auto found = std::ranges::find_if(routes_, [&](const Route& route) {
    return route.below ? path.starts_with(route.path) : path == route.path;
  });
  return found == routes_.end() ? nullptr : found->handler;
}

void ServerCore::add(std::shared_ptr<ServerConnection> connection) {
  connection->place = connections_.size();
  if (connection->surplus()) ++surplus_;
  std::shared_ptr<std::size_t>& count = by_network_[connection->network()];
  if (!count) count = std::make_shared<std::size_t>(0);
  ++*count;
  connection->network_count = count;
  connections_.push_back(std::move(connection));
}

void ServerCore::forget(ServerConnection& connection) {
  const std::size_t place = connection.place;
  if (place >= connections_.size() || connections_[place].get() != &connection) return;
  if (connection.surplus()) --surplus_;
  if (--*connection.network_count == 0) by_network_.erase(connection.network());
  const auto last = std::move(connections_[place]);
  if (place + 1 != connections_.size()) {
    connections_[place] = std::move(connections_.back());
    connections_[place]->place = place;
  }
  connections_.pop_back();
  if (connections_.empty() && draining) say_emptied();
}

bool ServerCore::evict_for(const std::string& network) {
  const std::size_t share = options.max_client_connections;
  const auto own = by_network_.find(network);
  if (own != by_network_.end() && *own->second >= share) return false;
  for (std::size_t looked = 0; looked < connections_.size(); ++looked) {
    evict_from_ = (evict_from_ + 1) % connections_.size();
    const std::shared_ptr<ServerConnection> one = connections_[evict_from_];
    if (*one->network_count <= share || !one->may_be_evicted()) continue;
    one->close();
    return true;
  }
  return false;
}

// Not from here: whoever waits may end the server, in the midst of a connection's end.
void ServerCore::say_emptied() {
  loop.post([self = shared_from_this()] { self->emptied_.set(); });
}

Task<void> ServerCore::drain(std::shared_ptr<ServerCore> self) {
  self->draining = true;
  Slices slices;
  // None is added meanwhile. The place of one that ends is taken by one from behind it, which was closed if
  // it was idle.
  for (std::size_t left = self->connections_.size(); left > 0;) {
    self->connections_[--left]->close_if_idle();
    if (slices.due(0)) co_await sleep_for(self->loop, Slices::kPause);
    left = std::min(left, self->connections_.size());
  }
  if (self->connections_.empty()) self->say_emptied();
}

Task<void> ServerCore::close_connections(std::shared_ptr<ServerCore> self) {
  Slices slices;
  while (!self->connections_.empty()) {
    self->close_last();
    if (slices.due(0)) co_await sleep_for(self->loop, Slices::kPause);
  }
}

void ServerCore::close_last() {
  const auto connection = connections_.back();
  connection->close();
  forget(*connection);
}

void ServerCore::close_all() {
  draining = true;
  while (!connections_.empty()) close_last();
  routes.clear();
  spare.reset();
  clock_.cancel();
}

void ServerCore::watch(Clock::time_point deadline) {
  if (deadline >= next_check_) return;
  next_check_ = deadline;
  clock_.arm(deadline, [this] { check_deadlines(); });
}

void ServerCore::check_deadlines() {
  const Clock::time_point now = Clock::now();
  Clock::time_point nearest = Clock::time_point::max();
  std::size_t expired = 0;
  for (std::size_t i = 0; i < connections_.size() && expired < kExpiredPerTurn;) {
    const auto connection = connections_[i];
    if (connection->deadline() <= now) {
      connection->expire();
      ++expired;
    }
    if (i >= connections_.size() || connections_[i] != connection) continue;  // another has its place
    nearest = std::min(nearest, connection->deadline());
    ++i;
  }
  next_check_ = Clock::time_point::max();
  if (expired == kExpiredPerTurn) return watch(now);
  if (nearest != Clock::time_point::max()) watch(std::max(nearest, now + kGrain));
}

}  // namespace fairlead::http
