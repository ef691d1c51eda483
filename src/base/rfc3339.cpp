#include "base/rfc3339.hpp"

#include <algorithm>
#include <cstdio>

namespace fairlead {

namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

// Reads the parts of a text from left to right. After a part that does not fit, `ok` stays false.
struct TimeReader {
  std::string_view rest;
  bool ok = true;

  int digits(std::size_t count, int max) noexcept {
    int value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const char c = i < rest.size() ? rest[i] : '\0';
      if (c < '0' || c > '9') ok = false;
      value = value * 10 + (c - '0');
    }
    rest.remove_prefix(std::min(count, rest.size()));
    ok = ok && value <= max;
    return ok ? value : 0;
  }
  bool skip(std::string_view allowed) noexcept {
    if (rest.empty() || !allowed.contains(rest.front())) return false;
    rest.remove_prefix(1);
    return true;
  }
  void require(std::string_view allowed) noexcept { ok = skip(allowed) && ok; }

  milliseconds fraction() noexcept {
    if (!skip(".")) return milliseconds(0);
    const std::size_t count = std::min(rest.find_first_not_of("0123456789"), rest.size());
    ok = ok && count > 0;
    int value = 0;
    for (std::size_t i = 0; i < 3; ++i) value = value * 10 + (i < count ? rest[i] - '0' : 0);
    rest.remove_prefix(count);
    return milliseconds(value);
  }
  minutes offset() noexcept {
    if (skip("Zz")) return minutes(0);
    const bool negative = rest.starts_with('-');
    require("+-");
    const int hours = digits(2, 23);
    require(":");
    const int total = hours * 60 + digits(2, 59);
    return minutes(negative ? -total : total);
  }
};

}  // namespace

std::string format_rfc3339(std::chrono::sys_time<milliseconds> time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  char text[64];
  const int size =
      std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
                    static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                    static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                    static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return std::string(text, static_cast<std::size_t>(size));
}

std::optional<std::chrono::sys_time<milliseconds>> parse_rfc3339(std::string_view text) noexcept {
  TimeReader in{text};
  const std::chrono::year year(in.digits(4, 9999));
  in.require("-");
  const std::chrono::month month(static_cast<unsigned>(in.digits(2, 12)));
  in.require("-");
  const std::chrono::day day(static_cast<unsigned>(in.digits(2, 31)));
  in.require("Tt ");
  const int hour = in.digits(2, 23);
  in.require(":");
  const int minute = in.digits(2, 59);
  in.require(":");
  const int second = in.digits(2, 59);
  const milliseconds fraction = in.fraction();
  const minutes offset = in.offset();
  const std::chrono::year_month_day date(year, month, day);
  if (!in.ok || !in.rest.empty() || !date.ok()) return std::nullopt;
  const auto time = std::chrono::sys_days(date) + std::chrono::hours(hour) + minutes(minute) +
                    std::chrono::seconds(second) + fraction - offset;
  const int utc_year(std::chrono::year_month_day(std::chrono::floor<std::chrono::days>(time)).year());
  if (utc_year < 0 || utc_year > 9999) return std::nullopt;
  return time;
}

}  // namespace fairlead
