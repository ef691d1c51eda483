// The bound on a turn of the loop in tests of floods.
#pragma once

#include <chrono>

namespace fairlead::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FAIRLEAD_SLOW_BUILD 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FAIRLEAD_SLOW_BUILD 1
#endif
#endif

// In thread CPU time. A sanitizer makes everything slower.
#ifdef FAIRLEAD_SLOW_BUILD
inline constexpr std::chrono::milliseconds kLongestTurn{500};
#else
inline constexpr std::chrono::milliseconds kLongestTurn{50};
#endif

}  // namespace fairlead::test
