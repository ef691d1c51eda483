#include "process/keeper/table.hpp"

#include <stdlib.h>

namespace fairlead::keeper {

bool Table::reserve() {
  if (size_ < capacity_) return true;
  const std::size_t wanted = capacity_ ? capacity_ * 2 : 64;
  void* grown = realloc(records_, wanted * sizeof(Record));
  if (!grown) return false;
  records_ = static_cast<Record*>(grown);
  capacity_ = wanted;
  return true;
}

void Table::add(std::uint64_t token, pid_t pid) {
  for (Record& old : gone_) {
    if (old.pid == pid) old.pid = 0;
  }
  records_[size_++] = Record{token, pid, false, false, 0, {}};
}

void Table::remove(Record& record) {
  record = records_[--size_];
}

std::size_t Table::running_count() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < size_; ++i) count += !records_[i].reaped;
  return count;
}

Record* Table::running(pid_t pid) {
  for (Record& record : *this) {
    if (record.pid == pid && !record.reaped) return &record;
  }
  return nullptr;
}

Record* Table::find(std::uint64_t token) {
  for (Record& record : *this) {
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
