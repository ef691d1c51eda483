// Parsing and formatting of durations in configuration and messages: 250ms, 30s, 10m, 1h.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"

namespace fairlead {

// Parses a number with the unit ms, s, m or h; a number without a unit is in seconds. Fails with `validation`
// if `text` is not a duration.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

// Formats `duration` in the largest unit of which it is a multiple: 90 s as 90s, 120 s as 2m.
// parse_duration() accepts the result.
std::string format_duration(std::chrono::milliseconds duration);

}  // namespace fairlead
