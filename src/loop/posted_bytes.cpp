#include "fairlead/loop/posted_bytes.hpp"

#include <string>

namespace fairlead {

Result<PostedBytes::Charge> PostedBytes::charge(std::size_t bytes) const {
  const std::size_t more = bytes + kOverheadBytes;
  std::size_t used = state_->used;
  while (more <= state_->max_bytes - used) {
    if (state_->used.compare_exchange_weak(used, used + more)) return Charge(state_, more);
  }
  return Error(ErrorKind::resource_exhausted, "max_backlog_bytes (" + std::to_string(state_->max_bytes) +
                                                  ") exceeded by messages queued between two loops");
}

}  // namespace fairlead
