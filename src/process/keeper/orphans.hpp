// Orphans: descendants of children that have become children of the keeper, because it is their subreaper.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "process/keeper/child_table.hpp"

namespace fairlead::keeper {

// ChildList: the pids of the keeper's children, including zombies. Only the keeper reaps them, so the list is
// exact.
class ChildList {
 public:
  // Reads /proc/thread-self/children. Searches all of /proc if the kernel does not have that file, or if
  // `scan`.
  explicit ChildList(bool scan);
  // Returns whether the pids could be read. If not, the list is empty.
  bool was_read() const { return read_succeeded_; }
  const pid_t* begin() const { return pids_.begin(); }
  const pid_t* end() const { return pids_.end(); }
  std::size_t size() const { return pids_.size(); }

 private:
  bool read_children_file();
  bool scan_proc();

  Array<pid_t> pids_;
  bool read_succeeded_ = false;
};

// Whether the child from which an orphan descends is found and runs.
enum class OwnerState { unknown, running, ended };

// The child from which an orphan descends.
struct OrphanOwner {
  OwnerState state;
  std::uint64_t token;
};

// Finds the child from which the orphan `pid` descends: by the session of the orphan, or else by the cookie
// in its environment.
OrphanOwner find_owner(ChildTable& table, pid_t keeper, pid_t pid);

}  // namespace fairlead::keeper
