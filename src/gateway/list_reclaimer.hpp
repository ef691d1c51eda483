// ListReclaimer: frees the lists of servers in slices. The last references to many lists can be released at
// once, for example when many servers are removed, or when the last call that uses an old catalogue ends.
// Freeing all these lists in one turn would block the loop.
#pragma once

#include <memory>
#include <vector>

#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"
#include "gateway/server_lists.hpp"

namespace fairlead::gateway {

// Used on the loop thread only.
class ListReclaimer : public std::enable_shared_from_this<ListReclaimer> {
 public:
  explicit ListReclaimer(Loop& loop) : loop_(loop) {}

  // Returns empty lists. When their last reference is released they are freed in slices, or at once if the
  // ListReclaimer no longer exists.
  std::shared_ptr<ServerLists> make_lists();

 private:
  void add(std::unique_ptr<ServerLists> lists);
  static Task<void> free_unused(std::shared_ptr<ListReclaimer> self);

  Loop& loop_;
  std::vector<std::unique_ptr<ServerLists>> unused_;  // the last element is being freed
};

}  // namespace fairlead::gateway
