#include "gateway/session_table.hpp"

#include <gtest/gtest.h>

#include "support/turns.hpp"

namespace fairlead::gateway {
namespace {

using mcp::LoggingLevel;

std::optional<mcp::Context> nobody() {
  return std::nullopt;
}

TEST(SessionTable, UnknownSessionAndGoneClientHaveNoContext) {
  SessionTable table;
  EXPECT_FALSE(table.find("a"));
  table.add("a", nobody);
  EXPECT_FALSE(table.find("a"));
  table.remove("a");
  table.remove("a");
}

TEST(SessionTable, LowestLevelIsThatOfOneSessionOrOfAll) {
  SessionTable table;
  EXPECT_EQ(table.lowest_level(""), SessionTable::kDefaultLevel);
  table.set_level("a", LoggingLevel::debug);
  table.set_level("b", LoggingLevel::error);
  EXPECT_EQ(table.lowest_level(""), LoggingLevel::debug);
  EXPECT_EQ(table.lowest_level("a"), LoggingLevel::debug);
  EXPECT_EQ(table.lowest_level("b"), SessionTable::kDefaultLevel) << "error is more severe than the default";
  table.remove("a");
  EXPECT_EQ(table.lowest_level(""), SessionTable::kDefaultLevel);
}

TEST(SessionTable, UrlsAreFoundByServerAndElicitation) {
  SessionTable table;
  table.note_url("s", "1", "a");
  table.note_url("s", "1", "b");
  table.note_url("s", "1", "b");
  table.note_url("s", "2", "c");
  table.note_url("t", "1", "d");
  table.note_url("s", "1", "");  // a client without a session cannot be told
  EXPECT_EQ(table.sessions_at_url("s", "1"), (std::vector<std::string>{"a", "b"}));
  table.forget_url("s", "1", "a");
  EXPECT_EQ(table.sessions_at_url("s", "1"), (std::vector<std::string>{"b"}));
  EXPECT_EQ(table.sessions_at_url("t", "1"), (std::vector<std::string>{"d"}));
}

TEST(SessionTable, OldestUrlIsForgottenBeyondTheLimit) {
  SessionTable table;
  for (std::size_t i = 0; i <= SessionTable::kMaxUrls; ++i) table.note_url("s", std::to_string(i), "a");
  EXPECT_TRUE(table.sessions_at_url("s", "0").empty());
  EXPECT_EQ(table.sessions_at_url("s", "1").size(), 1u);
  EXPECT_EQ(table.sessions_at_url("s", std::to_string(SessionTable::kMaxUrls)).size(), 1u);
}

TEST(SessionTable, ForgettingManyUrlsDoesNotHoldTheLoop) {
  const std::string prefix(SessionTable::kMaxElicitationIdBytes - 10, 'x');
  SessionTable table;
  for (std::size_t i = 0; i < SessionTable::kMaxUrls; ++i)
    table.note_url("s", prefix + std::to_string(i), "a");
  Loop loop;
  bool over = false;
  loop.post([&] {
    for (int i = 0; i < 2000; ++i) table.forget_url("s", prefix + std::to_string(i), "a");
    over = true;
  });
  loop.run_until([&] { return over; });
  test::expect_short_turns(loop);
  EXPECT_TRUE(table.sessions_at_url("s", prefix + "1999").empty());
  EXPECT_EQ(table.sessions_at_url("s", prefix + "2000").size(), 1u);
}

TEST(SessionTable, UrlOfAnElicitationWithALongIdIsNotRemembered) {
  SessionTable table;
  const std::string longest(SessionTable::kMaxElicitationIdBytes, 'x');
  table.note_url("s", longest, "a");
  table.note_url("s", longest + "x", "a");
  EXPECT_EQ(table.sessions_at_url("s", longest).size(), 1u);
  EXPECT_TRUE(table.sessions_at_url("s", longest + "x").empty());
}

}  // namespace
}  // namespace fairlead::gateway
