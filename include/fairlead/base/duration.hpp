// Durations as people write them: 250ms, 30s, 10m, 1h.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"

namespace fairlead {

// 250ms, 30s, 10m, 1h; a bare number is seconds. Kind validation otherwise.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

// In the largest unit that leaves no remainder; parse_duration() reads it back.
std::string format_duration(std::chrono::milliseconds duration);

}  // namespace fairlead
