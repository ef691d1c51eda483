#include "fairlead/base/duration.hpp"

#include <charconv>

namespace fairlead {

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const double scale = unit == "ms"                  ? 1
                       : unit.empty() || unit == "s" ? 1000
                       : unit == "m"                 ? 60'000
                       : unit == "h"                 ? 3'600'000
                                                     : 0;
  if (problem != std::errc() || !(number >= 0) || scale == 0 || number * scale > 1e12)
    return Error(ErrorKind::validation, "`" + std::string(text) + "` is not a duration");
  return std::chrono::milliseconds(static_cast<std::int64_t>(number * scale));
}

std::string format_duration(std::chrono::milliseconds duration) {
  const std::int64_t ms = duration.count();
  if (ms == 0) return "0s";
  if (ms % 3'600'000 == 0) return std::to_string(ms / 3'600'000) + "h";
  if (ms % 60'000 == 0) return std::to_string(ms / 60'000) + "m";
  if (ms % 1000 == 0) return std::to_string(ms / 1000) + "s";
  return std::to_string(ms) + "ms";
}

}  // namespace fairlead
