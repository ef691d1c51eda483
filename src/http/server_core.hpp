// ServerCore: what the connections of one server share. Private to the server.
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
#include "http/gate.hpp"
#include "http/response_head.hpp"

namespace fairlead::http {

class ServerConnection;
class ServerExchange;

class Routes {
 public:
  void add(std::string path, Handler handler);
  // The handler for a path; empty when there is none. Shared, since it may change its own route.
  std::shared_ptr<const Handler> find(std::string_view path) const;
  void clear() { routes_.clear(); }

 private:
  struct Route {
    std::string path;  // with the slash, without the star, where `below`
    bool below = false;
    std::shared_ptr<const Handler> handler;
  };
  std::vector<Route> routes_;  // few; the longest first
};

class ServerCore : public std::enable_shared_from_this<ServerCore> {
 public:
  ServerCore(Loop& on, ServerOptions given, ListenerKind kind)
      : loop(on), options(std::move(given)), gate(options, kind), clock_(on) {}

  Loop& loop;
  const ServerOptions options;
  const Gate gate;
  Routes routes;
  DateField date;
  std::string head;                       // where heads are put together
  std::shared_ptr<ServerExchange> spare;  // used again when a handler has answered on the spot
  bool draining = false;

  void add(std::shared_ptr<ServerConnection> connection);
  void forget(ServerConnection& connection);
  std::size_t count() const noexcept { return connections_.size() - surplus_; }
  std::size_t surplus() const noexcept { return surplus_; }
  // Closes an idle connection of a network that has more than its share, for one of `network`. Returns false
  // when there is none, or `network` has its share.
  bool evict_for(const std::string& network);
  Event& emptied() noexcept { return emptied_; }
  // Closes all connections that are idle, in slices. Those with a request under way end when it is answered.
  static Task<void> drain(std::shared_ptr<ServerCore> self);
  // Closes all connections, in slices. REQUIRES: no connection is added any more.
  static Task<void> close_connections(std::shared_ptr<ServerCore> self);
  // Closes all connections in this call and releases the routes.
  void close_all();

  // One clock for all connections: it looks at each one's deadline when the nearest has come.
  void watch(Clock::time_point deadline);

 private:
  void check_deadlines();
  void close_last();
  void say_emptied();

  std::vector<std::shared_ptr<ServerConnection>> connections_;
  std::size_t surplus_ = 0;  // of them: only there to be told that there are too many
  Event emptied_;
  std::unordered_map<std::string, std::shared_ptr<std::size_t>> by_network_;  // how many connections
  std::size_t evict_from_ = 0;                                                // where the last search ended
  Timer clock_;
  Clock::time_point next_check_ = Clock::time_point::max();
};

}  // namespace fairlead::http
