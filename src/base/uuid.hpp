// UUIDs of version 7 (RFC 9562): they begin with the time, so that rows ordered by id are ordered by
// creation. Private to the library.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "fairlead/base/result.hpp"

namespace fairlead {

class UuidGenerator {
 public:
  using Time = std::chrono::sys_time<std::chrono::milliseconds>;

  // Returns an id that is greater than all ids that this generator has returned, even if `now` is earlier
  // than in the last call. 62 bits are random, so that ids of several processes differ. Fails with `io` if
  // the system has no random bytes.
  Result<std::string> next(Time now);

 private:
  std::int64_t last_ms_ = 0;
  unsigned counter_ = 0;  // 12 bits; distinguishes ids of the same millisecond
};

}  // namespace fairlead
