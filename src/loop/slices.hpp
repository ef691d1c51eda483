// Slices: splits the processing of many entries into slices. After each slice, the caller returns to the
// loop, which serves others.
//
//   for (…) { …; if (slices.due(entry.text().size())) co_await sleep_for(loop, Slices::kPause); }
#pragma once

#include <chrono>
#include <cstddef>

namespace fairlead {

class Slices {
 public:
  // The delay between two slices. Not zero, because sleep_for() does not suspend for a zero delay.
  static constexpr std::chrono::nanoseconds kPause{1};

  // For a message of more bytes than this, the caller also pauses between two operations on the whole
  // message, such as parsing and forwarding.
  static constexpr std::size_t kLargeMessageBytes = 1u << 20;

  // The bytes of entries that are processed in one slice.
  static constexpr std::size_t kBytesPerSlice = 256u << 10;

  // Added to the size of every entry, for the work that does not depend on its size.
  static constexpr std::size_t kEntryOverheadBytes = 500;

  // The maximum number of entries in one slice, if all of them are empty.
  static constexpr std::size_t kMaxEntriesPerSlice = kBytesPerSlice / kEntryOverheadBytes + 1;

  // Called after an entry of `entry_bytes` was processed. Returns true if the slice is complete: the caller
  // then pauses and continues with the next slice.
  bool due(std::size_t entry_bytes) noexcept {
    slice_bytes_ += entry_bytes + kEntryOverheadBytes;
    if (slice_bytes_ < kBytesPerSlice) return false;
    slice_bytes_ = 0;
    return true;
  }

 private:
  std::size_t slice_bytes_ = 0;  // processed in the current slice
};

}  // namespace fairlead
