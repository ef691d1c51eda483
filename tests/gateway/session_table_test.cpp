#include "gateway/session_table.hpp"

#include <gtest/gtest.h>

#include "gateway/harness.hpp"
#include "protocol/envelope.hpp"
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

TEST(SessionTable, LevelThatASessionSetsAnewReplacesItsFormerOne) {
  SessionTable table;
  table.set_level("a", LoggingLevel::debug);
  table.set_level("a", LoggingLevel::error);
  EXPECT_EQ(table.lowest_level("a"), SessionTable::kDefaultLevel);
  EXPECT_EQ(table.lowest_level(""), SessionTable::kDefaultLevel);
  table.set_level("a", LoggingLevel::debug);
  EXPECT_EQ(table.lowest_level(""), LoggingLevel::debug);
  EXPECT_EQ(table.lowest_level("b"), SessionTable::kDefaultLevel);
}

TEST(SessionTable, CostOfTheLowestLevelDoesNotGrowWithTheSessions) {
  SessionTable table;
  const auto add_sessions = [&](int from, int to) {
    for (int i = from; i < to; ++i) table.set_level("session " + std::to_string(i), LoggingLevel::error);
  };
  const auto ask_often = [&] {
    bool same = true;
    for (int i = 0; i < 300; ++i) same = same && table.lowest_level("") == table.lowest_level("session 7");
    EXPECT_TRUE(same);
  };
  add_sessions(0, 10);
  const auto of_ten = test::cpu_time(ask_often);
  add_sessions(10, 5'000);
  EXPECT_LT(test::cpu_time(ask_often), 20 * of_ten);
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
  const std::string prefix(mcp::kMaxElicitationIdBytes - 10, 'x');
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

mcp::Context context_of_client(Loop& loop, const json::Raw& capabilities) {
  mcp::Server server("s", "1");
  std::optional<mcp::Context> context;
  mcp::tool(server, "t", "", [&](const mcp::Context& given, const Nothing&) {
    context = given;
    return "";
  });
  auto [near_end, far_end] = make_channel(loop, loop);
  const std::shared_ptr<Peer> peer = mcp::serve(server, far_end);
  mcp::ClientOptions options;
  options.pinned = mcp::kNewestLegacy;
  options.handlers.capabilities = capabilities;
  const auto client = loop.block_on(mcp::Client::on(near_end, std::move(options)));
  EXPECT_TRUE(client) << client.error().to_string();
  EXPECT_TRUE(loop.block_on((*client)->call_tool("t", raw("{}"))));
  loop.block_on((*client)->close());
  return context.value();
}

// A session keeps capabilities of up to 64 KiB.
TEST(SessionTable, LargeCapabilitiesOfManySessionsDoNotHoldTheLoop) {
  constexpr int kSessions = test::kTurnFactor == 1 ? 2000 : 200;
  std::string values;
  while (values.size() < 60'000) values += "1,";
  Loop loop;
  const mcp::Context context =
      context_of_client(loop, raw(R"({"elicitation":{"x":[)" + values + R"(1]},"sampling":{}})"));
  SessionTable table;
  for (int i = 0; i < kSessions; ++i) table.add(std::to_string(i), [&] { return std::optional(context); });
  std::optional<json::Raw> all;
  loop.turns().reset();
  loop.post([&] { all = table.capabilities([](const mcp::Context&) { return true; }); });
  loop.run_until([&] { return all.has_value(); });
  test::expect_short_turns(loop);
  EXPECT_EQ(all->text(), R"({"sampling":{},"elicitation":{"form":{}}})");
}

TEST(SessionTable, UrlOfAnElicitationWithALongIdIsNotRemembered) {
  SessionTable table;
  const std::string longest(mcp::kMaxElicitationIdBytes, 'x');
  table.note_url("s", longest, "a");
  table.note_url("s", longest + "x", "a");
  EXPECT_EQ(table.sessions_at_url("s", longest).size(), 1u);
  EXPECT_TRUE(table.sessions_at_url("s", longest + "x").empty());
}

}  // namespace
}  // namespace fairlead::gateway
