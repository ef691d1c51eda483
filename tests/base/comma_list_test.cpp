#include "base/comma_list.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fairlead {
namespace {

TEST(CommaListTest, ElementsAreTrimmedAndEmptyElementsSkipped) {
  std::vector<std::string> all;
  for_each_list_element(" a,b\t, ,,c d ,", [&](std::string_view element) { all.emplace_back(element); });
  EXPECT_EQ(all, (std::vector<std::string>{"a", "b", "c d"}));
  for_each_list_element("", [&](std::string_view element) { all.emplace_back(element); });
  EXPECT_EQ(all.size(), 3u);
}

TEST(CommaListTest, SearchStopsAtFirstMatch) {
  int seen = 0;
  EXPECT_TRUE(any_list_element("a,b,c", [&](std::string_view element) { return ++seen, element == "b"; }));
  EXPECT_EQ(seen, 2);
  EXPECT_FALSE(any_list_element("a,b,c", [](std::string_view element) { return element == "d"; }));
}

}  // namespace
}  // namespace fairlead
