// The keeper's memory: which children there are, which are gone but not wholly, and which were lately.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "process/keeper/array.hpp"
#include "process/keeper/protocol.hpp"

namespace fairlead::keeper {

struct Record {
  std::uint64_t token;
  pid_t pid;     // of the leader; also its group's and its session's
  char* cgroup;  // its directory, the record's own; null: none
  bool reaped;
  bool refused;           // it did not get to its program, and the library has been told
  bool lingering;         // reaped: something it started was still there at the last look
  std::int64_t deadline;  // reaped: when to report its end whatever is left, in ms
  Report report;          // reaped: what to say
};

class Table {
 public:
  // Makes room for one more; false when there is no memory.
  bool reserve() { return records_.reserve(); }
  // REQUIRES: reserve() since the last add().
  Record& add(std::uint64_t token, pid_t pid);
  void remove(Record& record);

  Record* begin() { return records_.begin(); }
  Record* end() { return records_.end(); }
  std::size_t size() const { return records_.size(); }
  std::size_t running_count() const;

  Record* running(pid_t pid);
  Record* find(std::uint64_t token);

  // Leaders that were reaped lately. A pid is not given out again while a session bears its number, so a
  // process whose session is in here was started by one of them.
  void remember_gone(const Record& record);
  const Record* gone(pid_t session) const;

 private:
  static constexpr std::size_t kGone = 256;

  Array<Record> records_;
  Record gone_[kGone] = {};
  std::size_t next_gone_ = 0;
};

}  // namespace fairlead::keeper
