#include "base/lower_case.hpp"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

TEST(LowerCaseTest, ChangesTheLettersOfAsciiOnly) {
  EXPECT_EQ(lower_case("AZaz@[`{09-Ä\xff"), "azaz@[`{09-Ä\xff");
  EXPECT_EQ(lower_case(std::string_view("A\0B", 3)), std::string_view("a\0b", 3));
  EXPECT_EQ(lower_case(""), "");
}

}  // namespace
}  // namespace fairlead
