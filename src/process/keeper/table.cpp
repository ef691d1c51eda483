#include "process/keeper/table.hpp"

namespace fairlead::keeper {

void Table::add(std::uint64_t token, pid_t pid) {
  for (Record& old : gone_) {
    if (old.pid == pid) old.pid = 0;
  }
  records_.add({token, pid, false, false, 0, {}});
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
  gone_[next_gone_++ % kGone] = record;
}

const Record* Table::gone(pid_t session) const {
  for (const Record& record : gone_) {
    if (record.pid == session && session != 0) return &record;
  }
  return nullptr;
}

}  // namespace fairlead::keeper
