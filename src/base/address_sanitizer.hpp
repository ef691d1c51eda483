// Private to the library.
#pragma once

namespace fairlead {

// Whether this is a build with the address sanitizer. It finds uses of freed memory only if the memory is
// freed, so nothing is cached then.
#if defined(__has_feature)
inline constexpr bool kAddressSanitizer = __has_feature(address_sanitizer);
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

}  // namespace fairlead
