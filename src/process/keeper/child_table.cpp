#include "process/keeper/child_table.hpp"

#include <stdlib.h>

namespace fairlead::keeper {

ChildRecord& ChildTable::add(std::uint64_t token, pid_t pid) {
  for (ChildRecord& old : reaped_) {
    if (old.pid == pid) old.pid = 0;
  }
  records_.add({token, pid, nullptr, false, false, false, 0, {}});
  return *(records_.end() - 1);
}

void ChildTable::remove(ChildRecord& record) {
  free(record.cgroup_path);
  records_.remove(record);
}

std::size_t ChildTable::running_count() const {
  std::size_t count = 0;
  for (const ChildRecord& record : records_) count += !record.reaped;
  return count;
}

ChildRecord* ChildTable::find_running(pid_t pid) {
  for (ChildRecord& record : records_) {
    if (record.pid == pid && !record.reaped) return &record;
  }
  return nullptr;
}

ChildRecord* ChildTable::find(std::uint64_t token) {
  for (ChildRecord& record : records_) {
    if (record.token == token) return &record;
  }
  return nullptr;
}

void ChildTable::remember_reaped(const ChildRecord& record) {
  ChildRecord& slot = reaped_[next_reaped_++ % kMaxReaped];
  slot = record;
  slot.cgroup_path = nullptr;
}

const ChildRecord* ChildTable::find_reaped(pid_t session) const {
  for (const ChildRecord& record : reaped_) {
    if (record.pid == session && session != 0) return &record;
  }
  return nullptr;
}

}  // namespace fairlead::keeper
