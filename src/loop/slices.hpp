// Slices: cuts work over many entries into parts, between which the loop serves others.
//
//   for (…) { …; if (slices.due(entry.text().size())) co_await sleep_for(loop, Slices::kPause); }
#pragma once

#include <chrono>
#include <cstddef>

namespace fairlead {

class Slices {
 public:
  static constexpr std::chrono::nanoseconds kPause{1};  // not zero, which would not wait at all

  // A message of more bytes is worth a pause between reading it and each thing that is done with it.
  static constexpr std::size_t kLargeMessage = 1u << 20;

  // So many bytes are worked on between two pauses.
  static constexpr std::size_t kBytes = 256u << 10;

  // An entry counts as so many bytes more than it has.
  static constexpr std::size_t kEntryOverhead = 500;

  // So many entries without bytes are worked on between two pauses.
  static constexpr std::size_t kEntries = kBytes / kEntryOverhead + 1;

  // Whether enough has been done since the last pause; called after an entry of this size.
  bool due(std::size_t entry_bytes) noexcept {
    done_ += entry_bytes + kEntryOverhead;
    if (done_ < kBytes) return false;
    done_ = 0;
    return true;
  }

 private:
  std::size_t done_ = 0;
};

}  // namespace fairlead
