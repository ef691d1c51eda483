#include "http/server_core.hpp"

#include <algorithm>

#include "fairlead/loop/timer.hpp"
#include "http/server_connection.hpp"
#include "loop/slices.hpp"

namespace fairlead::http {

namespace {

constexpr std::chrono::milliseconds kMinCheckInterval{50};  // between two checks of the deadlines
constexpr std::size_t kMaxExpiredPerTurn = 500;  // further expired connections are handled in the next turn

}  // namespace

void Routes::add(std::string path, Handler handler) {
  const bool is_prefix = path.ends_with("/*");
  if (is_prefix) path.pop_back();
  std::erase_if(routes_,
                [&](const Route& route) { return route.path == path && route.is_prefix == is_prefix; });
  const auto before = std::ranges::find_if(routes_, [&](const Route& route) {
    return route.path.size() < path.size() || (route.path == path && route.is_prefix);
  });
  routes_.insert(before,
                 Route{std::move(path), is_prefix, std::make_shared<const Handler>(std::move(handler))});
}

std::shared_ptr<const Handler> Routes::find(std::string_view path) const {
  const auto longer = [&](const Route& route) { return route.path.size() > path.size(); };
  const auto matches = [&](const Route& route) {
    return route.is_prefix ? path.starts_with(route.path) : path == route.path;
  };
  const auto found = std::find_if(std::ranges::partition_point(routes_, longer), routes_.end(), matches);
  return found == routes_.end() ? nullptr : found->handler;
}

void ServerCore::add(std::shared_ptr<ServerConnection> connection) {
  connection->index_in_core = connections_.size();
  if (connection->is_surplus()) ++surplus_count_;
  std::shared_ptr<std::size_t>& count = count_by_network_[connection->network()];
  if (!count) count = std::make_shared<std::size_t>(0);
  ++*count;
  connection->network_connection_count = count;
  connections_.push_back(std::move(connection));
}

void ServerCore::remove(ServerConnection& connection) {
  const std::size_t index = connection.index_in_core;
  if (index >= connections_.size() || connections_[index].get() != &connection) return;
  if (connection.is_surplus()) --surplus_count_;
  if (--*connection.network_connection_count == 0) count_by_network_.erase(connection.network());
  const auto removed = std::move(connections_[index]);
  if (index + 1 != connections_.size()) {
    connections_[index] = std::move(connections_.back());
    connections_[index]->index_in_core = index;
  }
  connections_.pop_back();
  if (connections_.empty() && draining) notify_emptied();
}

bool ServerCore::evict_for(const std::string& network) {
  const std::size_t share = options.max_client_connections;
  const auto own = count_by_network_.find(network);
  if (own != count_by_network_.end() && *own->second >= share) return false;
  for (std::size_t examined = 0; examined < connections_.size(); ++examined) {
    eviction_cursor_ = (eviction_cursor_ + 1) % connections_.size();
    const std::shared_ptr<ServerConnection> candidate = connections_[eviction_cursor_];
    if (*candidate->network_connection_count <= share || !candidate->may_be_evicted()) continue;
    candidate->close();
    return true;
  }
  return false;
}

// Sets the event in a later callback: a waiter may destroy the server, which must not happen while a
// connection is being closed.
void ServerCore::notify_emptied() {
  loop.post([self = shared_from_this()] { self->emptied_.set(); });
}

Task<void> ServerCore::drain(std::shared_ptr<ServerCore> self) {
  self->draining = true;
  Slices slices;
  // Visits the connections from the last to the first. No connections are added meanwhile. When a connection
  // is removed, the last connection moves to its index; the loop has already visited the last connection.
  for (std::size_t left = self->connections_.size(); left > 0;) {
    self->connections_[--left]->close_if_idle();
    if (slices.due(0)) co_await sleep_for(self->loop, Slices::kPause);
    left = std::min(left, self->connections_.size());
  }
  if (self->connections_.empty()) self->notify_emptied();
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
  remove(*connection);
}

void ServerCore::close_all() {
  draining = true;
  while (!connections_.empty()) close_last();
  routes.clear();
  deadline_timer_.cancel();
}

void ServerCore::schedule_deadline_check(Clock::time_point deadline) {
  if (deadline >= next_check_) return;
  next_check_ = deadline;
  deadline_timer_.arm(deadline, [this] { check_deadlines(); });
}

void ServerCore::check_deadlines() {
  const Clock::time_point now = Clock::now();
  Clock::time_point nearest = Clock::time_point::max();
  std::size_t expired = 0;
  for (std::size_t i = 0; i < connections_.size() && expired < kMaxExpiredPerTurn;) {
    const auto connection = connections_[i];
    if (connection->deadline() <= now) {
      connection->on_deadline();
      ++expired;
    }
    if (i >= connections_.size() || connections_[i] != connection)
      continue;  // it was removed, and another connection has its index now
    nearest = std::min(nearest, connection->deadline());
    ++i;
  }
  next_check_ = Clock::time_point::max();
  if (expired == kMaxExpiredPerTurn) return schedule_deadline_check(now);
  if (nearest != Clock::time_point::max())
    schedule_deadline_check(std::max(nearest, now + kMinCheckInterval));
}

}  // namespace fairlead::http
