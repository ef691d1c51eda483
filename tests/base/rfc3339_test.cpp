#include "base/rfc3339.hpp"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

using Time = std::chrono::sys_time<std::chrono::milliseconds>;
using std::chrono::milliseconds;

TEST(Rfc3339Test, FormattedTimeIsParsedToTheSameTime) {
  for (const std::int64_t ms : {0LL, 1LL, 1'785'232'800'123LL, 951'782'400'000LL, 253'402'300'799'999LL}) {
    const Time time{milliseconds(ms)};
    EXPECT_EQ(parse_rfc3339(format_rfc3339(time)), time) << format_rfc3339(time);
  }
  EXPECT_EQ(format_rfc3339(Time(milliseconds(951'782'400'005))), "2000-02-29T00:00:00.005Z");
}

TEST(Rfc3339Test, OffsetsAndFractionsAreApplied) {
  const Time noon = *parse_rfc3339("2026-07-28T12:00:00Z");
  EXPECT_EQ(parse_rfc3339("2026-07-28T14:30:00+02:30"), noon);
  EXPECT_EQ(parse_rfc3339("2026-07-28t07:00:00-05:00"), noon);
  EXPECT_EQ(parse_rfc3339("2026-07-28T12:00:00.5Z"), noon + milliseconds(500));
  EXPECT_EQ(parse_rfc3339("2026-07-28T12:00:00.123456789Z"), noon + milliseconds(123));
}

TEST(Rfc3339Test, OtherTextIsNotParsed) {
  for (const char* text :
       {"", "2026", "2026-07-28", "2026-07-28T12:00:00", "2026-02-29T12:00:00Z", "2026-13-01T12:00:00Z",
        "2026-07-28T24:00:00Z", "2026-07-28T12:00:60Z", "2026-07-28T12:00:00.Z", "2026-07-28T12:00:00+1:00",
        "2026-07-28T12:00:00Zx", "+026-07-28T12:00:00Z", "2026-07-28T12:00:00+24:00",
        "9999-12-31T23:59:59-23:59", "0000-01-01T00:00:00+23:59"})
    EXPECT_EQ(parse_rfc3339(text), std::nullopt) << text;
}

}  // namespace
}  // namespace fairlead
