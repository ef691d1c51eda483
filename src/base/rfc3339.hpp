// Points in time as text (RFC 3339), such as 2026-07-28T10:00:00.123Z. Private to the library.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace fairlead {

// Returns the time in UTC, always with milliseconds, so that texts compare like times. REQUIRES: the years 0
// to 9999.
std::string format_rfc3339(std::chrono::sys_time<std::chrono::milliseconds> time);

// Parses a date and time with `Z` or an offset such as +02:00. Digits beyond milliseconds are ignored.
// Returns nullopt for other text, for dates that do not exist, and for leap seconds.
std::optional<std::chrono::sys_time<std::chrono::milliseconds>> parse_rfc3339(std::string_view text) noexcept;

}  // namespace fairlead
