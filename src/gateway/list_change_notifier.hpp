// ListChangeNotifier: sends list_changed notifications to clients. All changes of one turn are combined: in a
// later turn, each client is notified at most once for each kind of list. Private to the layer.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "fairlead/loop/loop.hpp"
#include "fairlead/mcp/server.hpp"
#include "mcp/server_state.hpp"

namespace fairlead::gateway {

class ListChangeNotifier : public std::enable_shared_from_this<ListChangeNotifier> {
 public:
  // With more changes than this in one turn, all clients are notified, because evaluating so many predicates
  // for each client would take too long.
  static constexpr std::size_t kMaxPredicates = 16;

  // REQUIRES: `loop` outlives this object.
  ListChangeNotifier(Loop& loop, mcp::Server front) : loop_(loop), front_(std::move(front)) {}

  // Schedules a notification of the clients for which `affected` returns true; of all clients if `affected`
  // is null. `affected` is evaluated when the notification is sent. REQUIRES: a client that requests the list
  // from now on receives the changed list.
  void notify_changed(mcp::ListKind kind, mcp::ClientPredicate affected);

 private:
  // The clients to be notified of changes of one kind of list.
  struct Recipients {
    bool scheduled = false;  // send() is posted
    bool all_clients = false;
    std::vector<mcp::ClientPredicate> predicates;

    void add(mcp::ClientPredicate affected);
    bool contains(std::string_view session, const Principal& principal) const;
  };
  void send(mcp::ListKind kind);

  Loop& loop_;
  mcp::Server front_;
  std::array<Recipients, 4> recipients_;  // by mcp::ListKind
};

}  // namespace fairlead::gateway
