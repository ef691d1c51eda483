// ChildTable: the keeper's records of its children: those that run, those that have been reaped and whose end
// has not been reported yet, and those that were reaped recently.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "process/keeper/array.hpp"
#include "process/keeper/protocol.hpp"

namespace fairlead::keeper {

struct ChildRecord {
  std::uint64_t token;
  pid_t pid;          // also the number of the child's process group and session
  char* cgroup_path;  // path of its cgroup, owned by the record; null: none
  bool reaped;
  bool refused;                  // the start failed, and ReportType::refused has been sent
  bool has_survivors;            // reaped: a descendant was still alive at the last check
  std::int64_t report_deadline;  // reaped: the time (CLOCK_MONOTONIC, ms) at which the end is reported even
                                 // if descendants are alive
  Report report;                 // reaped: the report of its end
};

class ChildTable {
 public:
  // Makes room for one more record. Returns false if memory is exhausted.
  bool reserve_one() { return records_.reserve_one(); }
  // REQUIRES: reserve_one() was called since the last add().
  ChildRecord& add(std::uint64_t token, pid_t pid);
  // Invalidates pointers to the last record, which moves to the place of `record`.
  void remove(ChildRecord& record);

  ChildRecord* begin() { return records_.begin(); }
  ChildRecord* end() { return records_.end(); }
  std::size_t size() const { return records_.size(); }
  std::size_t running_count() const;

  ChildRecord* find_running(pid_t pid);
  ChildRecord* find(std::uint64_t token);

  // Stores the record among those of the kMaxReaped children that were reaped last; find_reaped() searches
  // these. The kernel does not reuse a pid while a session has that number. So if find_reaped() finds the
  // session of a process, the process is a descendant of that child.
  void remember_reaped(const ChildRecord& record);
  const ChildRecord* find_reaped(pid_t session) const;

 private:
  static constexpr std::size_t kMaxReaped = 256;

  Array<ChildRecord> records_;
  ChildRecord reaped_[kMaxReaped] = {};
  std::size_t next_reaped_ = 0;
};

}  // namespace fairlead::keeper
