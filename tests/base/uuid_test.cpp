#include "base/uuid.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <set>

namespace fairlead {
namespace {

using std::chrono::milliseconds;

TEST(UuidTest, BeginsWithTheTimeAndHasVersionAndVariant) {
  UuidGenerator ids;
  const std::string id = ids.next(UuidGenerator::Time(milliseconds(0x0123456789ab))).value();
  EXPECT_TRUE(id.starts_with("01234567-89ab-7")) << id;
  EXPECT_TRUE(std::string("89ab").contains(id[19])) << id;
  EXPECT_TRUE(std::regex_match(id, std::regex("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"))) << id;
}

TEST(UuidTest, IdsGrowWithinAMillisecondAndWhenTheClockIsSetBack) {
  UuidGenerator ids;
  std::string last;
  for (int i = 0; i < 10'000; ++i) {
    const std::string id = ids.next(UuidGenerator::Time(milliseconds(1'000'000 - i / 1'000))).value();
    EXPECT_LT(last, id);
    last = id;
  }
}

TEST(UuidTest, GeneratorsReturnDifferentIdsForTheSameTime) {
  std::set<std::string> seen;
  for (int i = 0; i < 1'000; ++i)
    seen.insert(UuidGenerator().next(UuidGenerator::Time(milliseconds(5))).value());
  EXPECT_EQ(seen.size(), 1'000U);
}

}  // namespace
}  // namespace fairlead
