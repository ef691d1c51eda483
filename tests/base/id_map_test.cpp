// IdMap: a hash table whose keys are ids.
#include "fairlead/base/id_map.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace fairlead {
namespace {

TEST(IdMapTest, IdIsFoundByAView) {
  IdMap<int> map;
  for (const char* id : {"", "1", "12345678", "123456789", "\"a longer id, with quotes\""})
    map.emplace(id, 1);
  for (const std::string id : {"", "1", "12345678", "123456789", "\"a longer id, with quotes\""})
    EXPECT_TRUE(map.contains(std::string_view(id))) << id;
  EXPECT_FALSE(map.contains(std::string_view("2")));
  EXPECT_FALSE(map.contains(std::string_view("1234567\0", 8)));
}

TEST(IdMapTest, ConsecutiveNumbersHaveDifferentHashes) {
  std::set<std::size_t> hashes;
  for (int id = 0; id < 10'000; ++id) hashes.insert(IdHash()(std::to_string(id)));
  EXPECT_EQ(hashes.size(), 10'000U);
}

// Otherwise a client could choose ids that collide.
TEST(IdMapTest, HashDependsOnASeedOfTheProcess) {
  const std::uint64_t product = (std::uint64_t{1} ^ std::uint64_t{'1'}) * 0x9e3779b97f4a7c15;
  const std::uint64_t unseeded = product ^ product >> 32;
  EXPECT_NE(IdHash()("1"), unseeded);
  EXPECT_EQ(detail::id_hash_seed(), detail::id_hash_seed());
}

}  // namespace
}  // namespace fairlead
