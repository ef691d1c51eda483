#include "process/keeper/table.hpp"

#include <stdlib.h>

namespace fairlead::keeper {

Record& Table::add(std::uint64_t token, pid_t pid) {
  for (Record& old : gone_) {
    if (old.pid == pid) old.pid = 0;
  }
  records_.add({token, pid, nullptr, false, false, false, 0, {}});
  return *(records_.end() - 1);
}

void Table::remove(Record& record) {
  free(record.cgroup);
  records_.remove(record);
}

std::size_t Table::running_count() const {
  std::size_t count = 0;
  for (const Record& record : records_) count += !record.reaped;
  return count;
}

Record* Table::running(pid_t pid) {
  for (Record& record : records_) {
    if (record.pid == pid && !record.reaped) return &record;
  }
  return nullptr;
}

Record* Table::find(std::uint64_t token) {
  for (Record& record : records_) {
    if (record.token == token) return &record;
  }
  return nullptr;
}

void Table::remember_gone(const Record& record) {
  Record& place = gone_[next_gone_++ % kGone];
  place = record;
  place.cgroup = nullptr;
}

const Record* Table::gone(pid_t session) const {
  for (const Record& record : gone_) {
    if (record.pid == session && session != 0) return &record;
  }
  return nullptr;
}

}  // namespace fairlead::keeper
