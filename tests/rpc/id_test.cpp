// Parsing of ids that this library assigned to its calls (R1.3).
#include "fairlead/rpc/id.hpp"

#include <gtest/gtest.h>

namespace fairlead::rpc {
namespace {

TEST(ParseCallIdTest, ParsesAssignedIds) {
  EXPECT_EQ(parse_call_id("1"), 1u);
  EXPECT_EQ(parse_call_id("9007199254740993"), 9007199254740993u);
  EXPECT_EQ(parse_call_id("18446744073709551615"), 18446744073709551615u);
}

TEST(ParseCallIdTest, RejectsOtherSpellings) {
  for (const std::string_view id : {"", "0", "01", "-1", "+1", "1.0", "1e0", "1E0", "\"1\"", "null", " 1",
                                    "1 ", "0x1", "18446744073709551616", "123456789012345678901234567890"})
    EXPECT_EQ(parse_call_id(id), std::nullopt) << id;
}

}  // namespace
}  // namespace fairlead::rpc
