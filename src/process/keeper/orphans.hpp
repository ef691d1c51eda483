// What became the keeper's child without having been started by it: orphans of the children, which come to
// the keeper because it is their subreaper.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "process/keeper/table.hpp"

namespace fairlead::keeper {

// Reads the list of our children, zombies included. We alone reap them, so the list is exact.
class ChildList {
 public:
  // `scan`: look through all of /proc, as is done when the kernel keeps no such list.
  explicit ChildList(bool scan);
  bool valid() const { return valid_; }
  const pid_t* begin() const { return pids_.begin(); }
  const pid_t* end() const { return pids_.end(); }
  std::size_t size() const { return pids_.size(); }

 private:
  bool read_children_file();
  bool scan_proc();

  Array<pid_t> pids_;
  bool valid_ = false;
};

enum class Owner { unknown, running, gone };

struct Claim {
  Owner owner;
  std::uint64_t token;
};

// Which child `pid` descends from: told by its session, else by the cookie in its environment.
Claim claim(Table& table, pid_t keeper, pid_t pid);

}  // namespace fairlead::keeper
