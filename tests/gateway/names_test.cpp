// Names of at most 64 characters that are a pure function of server and tool.
#include "gateway/names.hpp"

#include <gtest/gtest.h>

namespace fairlead::gateway {
namespace {

TEST(GatewayNames, AnOrdinaryNameIsServerAndTool) {
  EXPECT_EQ(offered_name("files", "read_file"), "files__read_file");
  EXPECT_EQ(offered_name("a", "_b"), "a___b");
}

TEST(GatewayNames, ALongNameIsCutAndStaysItsOwn) {
  const std::string long_tool(128, 'x');
  const std::string one = offered_name("files", long_tool);
  const std::string other = offered_name("files", long_tool.substr(1) + "y");
  EXPECT_EQ(one.size(), 64U);
  EXPECT_EQ(other.size(), 64U);
  EXPECT_NE(one, other);
  // Written down, as it must never change.
  EXPECT_EQ(one, "files__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_" + one.substr(54));
}

TEST(GatewayNames, ExactlySixtyFourCharactersAreLeftAlone) {
  EXPECT_EQ(offered_name("files", std::string(57, 'x')), "files__" + std::string(57, 'x'));
}

TEST(GatewayNames, WhatModelsDoNotTakeIsReplacedWithoutCollision) {
  const std::string dots = offered_name("s", "a.b");
  const std::string slashes = offered_name("s", "a/b");
  EXPECT_EQ(dots.substr(0, 7), "s__a_b_");
  EXPECT_EQ(slashes.substr(0, 7), "s__a_b_");
  EXPECT_NE(dots, slashes);
  EXPECT_NE(dots, offered_name("s", "a_b"));
  EXPECT_EQ(offered_name("s", "\xc3\xa4")
                .find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"),
            std::string::npos);
}

TEST(GatewayNames, AServerNameThatCouldBeTakenForAnotherIsRefused) {
  EXPECT_EQ(server_name_problem("my-server_2"), std::nullopt);
  for (const char* bad : {"", "a__b", "_a", "a_", "a b", "a.b", "a/b", "\xc3\xa4"}) {
    EXPECT_NE(server_name_problem(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(server_name_problem(std::string(32, 'a')), std::nullopt);
  EXPECT_NE(server_name_problem(std::string(33, 'a')), std::nullopt);
}

}  // namespace
}  // namespace fairlead::gateway
