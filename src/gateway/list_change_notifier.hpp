// ListChangeNotifier: sends list_changed notifications to the clients of all endpoints. All changes of one
// turn are combined: in a later turn, each client is notified at most once for each kind of list. Private to
// the layer.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "fairlead/loop/loop.hpp"
#include "fairlead/mcp/server.hpp"
#include "gateway/endpoint_scope.hpp"
#include "mcp/server_state.hpp"

namespace fairlead::gateway {

class ListChangeNotifier : public std::enable_shared_from_this<ListChangeNotifier> {
 public:
  // Returns whether a client, identified by its session and its principal, is affected by a change.
  using Affected =
      std::function<bool(const EndpointScope& scope, std::string_view session, const Principal& principal)>;

  // With more changes than this in one turn, all clients are notified, because evaluating so many predicates
  // for each client would take too long.
  static constexpr std::size_t kMaxPredicates = 16;

  // REQUIRES: `loop` outlives this object.
  explicit ListChangeNotifier(Loop& loop) : loop_(loop) {}

  // Adds the clients of an endpoint, for as long as its server exists. Replaces the scope of a known server.
  void add_front(const mcp::Server& front, std::shared_ptr<const EndpointScope> scope);
  // Schedules a notification of the clients for which `affected` returns true; of all clients if `affected`
  // is null. `affected` is evaluated when the notification is sent. REQUIRES: a client that requests the list
  // from now on receives the changed list.
  void notify_changed(mcp::ListKind kind, Affected affected);

 private:
  struct Front {
    std::weak_ptr<mcp::ServerState> server;
    std::shared_ptr<const EndpointScope> scope;
  };
  // The clients to be notified of changes of one kind of list.
  struct Recipients {
    bool scheduled = false;  // send() is posted
    bool all_clients = false;
    std::vector<Affected> predicates;

    void add(Affected affected);
    bool contains(const EndpointScope& scope, std::string_view session, const Principal& principal) const;
  };
  void send(mcp::ListKind kind);

  Loop& loop_;
  std::vector<Front> fronts_;
  std::array<Recipients, 4> recipients_;  // by mcp::ListKind
};

}  // namespace fairlead::gateway
