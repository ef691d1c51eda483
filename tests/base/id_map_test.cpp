// IdMap: a table whose keys are ids.
#include "fairlead/base/id_map.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>

namespace fairlead {
namespace {

bool has(IdMap<int>& map, std::string_view id) {
  return map.find(id) != map.end();
}

TEST(IdMapTest, IdIsFoundByAView) {
  IdMap<int> map;
  for (const char* id : {"", "1", "12345678", "123456789", "\"a longer id, with quotes\""})
    EXPECT_TRUE(map.insert(id, 1));
  for (const std::string id : {"", "1", "12345678", "123456789", "\"a longer id, with quotes\""})
    EXPECT_TRUE(has(map, id)) << id;
  EXPECT_FALSE(has(map, "2"));
  EXPECT_FALSE(has(map, std::string_view("1234567\0", 8)));
}

TEST(IdMapTest, SecondEntryWithAnIdIsNotInserted) {
  IdMap<int> map;
  EXPECT_TRUE(map.insert("a", 1));
  EXPECT_FALSE(map.insert("a", 2));
  EXPECT_EQ(map.find("a")->value, 1);
  EXPECT_EQ(map.size(), 1U);
}

// Grows and shrinks the table, so that it is searched with and without an index.
TEST(IdMapTest, BehavesLikeAMapWhileItGrowsAndShrinks) {
  std::mt19937 random(1);
  IdMap<int> map;
  std::map<std::string, int> expected;
  for (const std::size_t target : {5U, 300U, 3U, 2000U, 0U, 20U, 0U}) {
    while (expected.size() != target) {
      const std::string id = std::to_string(random() % 5000);
      const auto found = map.find(id);
      ASSERT_EQ(found != map.end(), expected.contains(id));
      if (expected.size() < target) {
        const int value = static_cast<int>(random() % 1000);
        ASSERT_EQ(map.insert(id, value), expected.emplace(id, value).second);
      } else if (found != map.end()) {
        ASSERT_EQ(map.extract(found), expected.at(id));
        expected.erase(id);
      }
    }
    std::map<std::string, int> seen;
    for (const auto& [id, value] : map) seen.emplace(id, value);
    ASSERT_EQ(seen, expected);
    ASSERT_EQ(map.size(), target);
    for (const auto& [id, value] : expected) {
      const auto found = map.find(id);
      ASSERT_TRUE(found != map.end()) << id;
      ASSERT_EQ(found->value, value);
    }
  }
}

TEST(IdMapTest, EraseIfRemovesAllMatchingEntries) {
  IdMap<int> map;
  for (int i = 0; i < 100; ++i) map.insert(std::to_string(i), i);
  map.erase_if([](int value) { return value % 3 != 0; });
  EXPECT_EQ(map.size(), 34U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(has(map, std::to_string(i)), i % 3 == 0) << i;
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
