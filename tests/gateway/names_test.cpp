// Public names: at most 64 characters, a pure function of server and tool.
#include "gateway/names.hpp"

#include <gtest/gtest.h>

namespace fairlead::gateway {
namespace {

TEST(GatewayNamesTest, ShortNameIsServerAndTool) {
  EXPECT_EQ(public_name("files", "read_file"), "files__read_file");
  EXPECT_EQ(public_name("a", "_b"), "a___b");
}

TEST(GatewayNamesTest, LongNameIsTruncatedAndStaysUnique) {
  const std::string long_tool(128, 'x');
  const std::string one = public_name("files", long_tool);
  const std::string other = public_name("files", long_tool.substr(1) + "y");
  EXPECT_EQ(one.size(), 64U);
  EXPECT_EQ(other.size(), 64U);
  EXPECT_NE(one, other);
  // The expected text is spelled out because it must never change.
  EXPECT_EQ(one, "files__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_" + one.substr(54));
}

TEST(GatewayNamesTest, NameOf64CharactersIsUnchanged) {
  EXPECT_EQ(public_name("files", std::string(57, 'x')), "files__" + std::string(57, 'x'));
}

TEST(GatewayNamesTest, InvalidCharactersAreReplacedWithoutCollision) {
  const std::string dots = public_name("s", "a.b");
  const std::string slashes = public_name("s", "a/b");
  EXPECT_EQ(dots.substr(0, 7), "s__a_b_");
  EXPECT_EQ(slashes.substr(0, 7), "s__a_b_");
  EXPECT_NE(dots, slashes);
  EXPECT_NE(dots, public_name("s", "a_b"));
  EXPECT_EQ(public_name("s", "\xc3\xa4")
                .find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"),
            std::string::npos);
}

TEST(GatewayNamesTest, AmbiguousServerNameIsRejected) {
  EXPECT_EQ(server_name_problem("my-server_2"), std::nullopt);
  for (const char* bad : {"", "a__b", "_a", "a_", "a b", "a.b", "a/b", "\xc3\xa4"}) {
    EXPECT_NE(server_name_problem(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(server_name_problem(std::string(32, 'a')), std::nullopt);
  EXPECT_NE(server_name_problem(std::string(33, 'a')), std::nullopt);
}

}  // namespace
}  // namespace fairlead::gateway
