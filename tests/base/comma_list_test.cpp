#include "base/comma_list.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fairlead {
namespace {

TEST(CommaList, ElementsAreTrimmedAndEmptyOnesPassedOver) {
  std::vector<std::string> all;
  each_list_element(" a,b\t, ,,c d ,", [&](std::string_view one) { all.emplace_back(one); });
  EXPECT_EQ(all, (std::vector<std::string>{"a", "b", "c d"}));
  each_list_element("", [&](std::string_view one) { all.emplace_back(one); });
  EXPECT_EQ(all.size(), 3u);
}

TEST(CommaList, SearchEndsAtTheFirstAcceptedElement) {
  int seen = 0;
  EXPECT_TRUE(any_list_element("a,b,c", [&](std::string_view one) { return ++seen, one == "b"; }));
  EXPECT_EQ(seen, 2);
  EXPECT_FALSE(any_list_element("a,b,c", [](std::string_view one) { return one == "d"; }));
}

}  // namespace
}  // namespace fairlead
