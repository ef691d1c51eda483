// ListAnnouncer: tells clients that lists have changed. However many changes there are in one turn of the
// loop, the clients are visited once for each kind of list, in a turn of its own. Private to the layer.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "fairlead/loop/loop.hpp"
#include "fairlead/mcp/server.hpp"
#include "mcp/server_state.hpp"

namespace fairlead::gateway {

class ListAnnouncer : public std::enable_shared_from_this<ListAnnouncer> {
 public:
  // With more changes in one turn, all clients are told: asking for each client which of them concern it
  // would take too long.
  static constexpr std::size_t kMaxConcerns = 16;

  // `loop` outlives it.
  ListAnnouncer(Loop& loop, mcp::Server front) : loop_(loop), front_(std::move(front)) {}

  // Has the clients told that it `concerns` by then; all if that is null. What they are shown from now on is
  // to be the changed list.
  void changed(mcp::ListKind kind, mcp::Concerns concerns);

 private:
  // Whom the changes of one kind of list are told to.
  struct Audience {
    bool waiting = false;  // to be told
    bool everybody = false;
    std::vector<mcp::Concerns> concerns;

    void add(mcp::Concerns one);
    bool has(std::string_view session, const Principal& principal) const;
  };
  void announce(mcp::ListKind kind);

  Loop& loop_;
  mcp::Server front_;
  std::array<Audience, 4> audiences_;  // by mcp::ListKind
};

}  // namespace fairlead::gateway
