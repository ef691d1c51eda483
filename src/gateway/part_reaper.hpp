// PartReaper: frees the parts of catalogues in slices. The last reference to many parts may end at once, as
// when servers are removed or a call that holds an old catalogue ends, and freeing them must not hold the
// loop.
#pragma once

#include <memory>
#include <vector>

#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"
#include "gateway/offers.hpp"

namespace fairlead::gateway {

// Loop thread only.
class PartReaper : public std::enable_shared_from_this<PartReaper> {
 public:
  explicit PartReaper(Loop& loop) : loop_(loop) {}

  // A part that is freed in slices when its last reference ends. Without this reaper it is freed at once.
  std::shared_ptr<Listed> make_part();

 private:
  void add(std::unique_ptr<Listed> part);
  static Task<void> run(std::shared_ptr<PartReaper> self);

  Loop& loop_;
  std::vector<std::unique_ptr<Listed>> unused_;  // the last one is being freed
};

}  // namespace fairlead::gateway
