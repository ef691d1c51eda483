// ServerCore: the state that the connections of one http::Server share: options, routes, the list of
// connections and the timer for their deadlines. Private to src/http.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fairlead/http/server.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/loop/timer.hpp"
#include "http/host_origin_policy.hpp"
#include "http/response_head.hpp"

namespace fairlead::http {

class ServerConnection;

// The routes of a server: paths with their handlers.
class Routes {
 public:
  // Adds a route, or replaces the one with the same path. A path that ends in "/*" matches every path below
  // it.
  void add(std::string path, Handler handler);
  // Returns the handler of the longest route that matches `path`; null if no route matches. The result shares
  // ownership of the handler, because a handler may replace its own route while it runs.
  std::shared_ptr<const Handler> find(std::string_view path) const;
  void clear() { routes_.clear(); }

 private:
  struct Route {
    std::string path;        // if `is_prefix`: with the final slash, without the asterisk
    bool is_prefix = false;  // matches every path that starts with `path`
    std::shared_ptr<const Handler> handler;
  };
  std::vector<Route> routes_;  // sorted by length, longest first; a server has few
};

class ServerCore : public std::enable_shared_from_this<ServerCore> {
 public:
  ServerCore(Loop& server_loop, ServerOptions server_options, ListenerKind kind)
      : loop(server_loop),
        options(std::move(server_options)),
        host_origin_policy(options, kind),
        deadline_timer_(server_loop) {}

  Loop& loop;
  const ServerOptions options;
  const HostOriginPolicy host_origin_policy;
  Routes routes;
  DateField date;
  PlainHead plain_head;
  std::string head_buffer;  // buffer in which all connections serialize heads
  bool draining = false;

  void add(std::shared_ptr<ServerConnection> connection);
  void remove(ServerConnection& connection);
  // Returns the number of connections that are not surplus (see ServerConnection).
  std::size_t connection_count() const noexcept { return connections_.size() - surplus_count_; }
  std::size_t surplus_count() const noexcept { return surplus_count_; }
  // Makes room for a connection from `network`: closes an idle connection of a network that has more than
  // max_client_connections. Returns false if no connection may be closed, or if `network` has reached that
  // limit itself.
  bool evict_for(const std::string& network);
  // Returns an event that is set when a draining server has no connections left.
  Event& emptied() noexcept { return emptied_; }
  // Closes the idle connections, in slices. The other connections close themselves after their response,
  // because `draining` is set.
  static Task<void> drain(std::shared_ptr<ServerCore> self);
  // Closes all connections, in slices. REQUIRES: no connections are added any more.
  static Task<void> close_connections(std::shared_ptr<ServerCore> self);
  // Closes all connections within this call, and destroys the routes with their handlers.
  void close_all();

  // Schedules a check of the deadlines of all connections at `deadline`, unless an earlier check is
  // scheduled. One timer serves all connections.
  void schedule_deadline_check(Clock::time_point deadline);

 private:
  void check_deadlines();
  void close_last();
  void notify_emptied();

  std::vector<std::shared_ptr<ServerConnection>> connections_;
  std::size_t surplus_count_ = 0;  // number of connections that exceed max_connections and only get 503
  Event emptied_;
  std::unordered_map<std::string, std::shared_ptr<std::size_t>>
      count_by_network_;             // number of connections by network
  std::size_t eviction_cursor_ = 0;  // index of the connection at which the last eviction search ended
  Timer deadline_timer_;
  Clock::time_point next_check_ = Clock::time_point::max();
};

}  // namespace fairlead::http
