#include "gateway/session_table.hpp"

#include <gtest/gtest.h>

#include "gateway/harness.hpp"
#include "protocol/envelope.hpp"
#include "support/turns.hpp"

namespace fairlead::gateway {
namespace {

using mcp::LoggingLevel;

std::optional<mcp::Context> no_context() {
  return std::nullopt;
}

TEST(SessionTableTest, FindClientReturnsNulloptForUnknownSessionAndDisconnectedClient) {
  SessionTable table;
  EXPECT_FALSE(table.find_client("a"));
  table.add("a", no_context);
  EXPECT_FALSE(table.find_client("a"));
  table.remove("a");
  table.remove("a");
}

TEST(SessionTableTest, LowestLogLevelIsOfOneSessionOrOfAll) {
  SessionTable table;
  EXPECT_EQ(table.lowest_log_level(""), SessionTable::kDefaultLogLevel);
  table.set_log_level("a", LoggingLevel::debug);
  table.set_log_level("b", LoggingLevel::error);
  EXPECT_EQ(table.lowest_log_level(""), LoggingLevel::debug);
  EXPECT_EQ(table.lowest_log_level("a"), LoggingLevel::debug);
  EXPECT_EQ(table.lowest_log_level("b"), SessionTable::kDefaultLogLevel)
      << "error is more severe than the default";
  table.remove("a");
  EXPECT_EQ(table.lowest_log_level(""), SessionTable::kDefaultLogLevel);
}

TEST(SessionTableTest, NewLogLevelOfSessionReplacesFormerLevel) {
  SessionTable table;
  table.set_log_level("a", LoggingLevel::debug);
  table.set_log_level("a", LoggingLevel::error);
  EXPECT_EQ(table.lowest_log_level("a"), SessionTable::kDefaultLogLevel);
  EXPECT_EQ(table.lowest_log_level(""), SessionTable::kDefaultLogLevel);
  table.set_log_level("a", LoggingLevel::debug);
  EXPECT_EQ(table.lowest_log_level(""), LoggingLevel::debug);
  EXPECT_EQ(table.lowest_log_level("b"), SessionTable::kDefaultLogLevel);
}

TEST(SessionTableTest, LowestLogLevelCostIsIndependentOfSessionCount) {
  SessionTable table;
  const auto add_sessions = [&](int from, int to) {
    for (int i = from; i < to; ++i) table.set_log_level("session " + std::to_string(i), LoggingLevel::error);
  };
  const auto query_often = [&] {
    bool same = true;
    for (int i = 0; i < 300; ++i)
      same = same && table.lowest_log_level("") == table.lowest_log_level("session 7");
    EXPECT_TRUE(same);
  };
  add_sessions(0, 10);
  const auto of_ten = test::cpu_time(query_often);
  add_sessions(10, 5'000);
  EXPECT_LT(test::cpu_time(query_often), 20 * of_ten);
}

TEST(SessionTableTest, UrlElicitationsAreFoundByServerAndId) {
  SessionTable table;
  table.add_url_elicitation("s", "1", "a");
  table.add_url_elicitation("s", "1", "b");
  table.add_url_elicitation("s", "1", "b");
  table.add_url_elicitation("s", "2", "c");
  table.add_url_elicitation("t", "1", "d");
  table.add_url_elicitation("s", "1", "");  // a client without a session cannot be notified
  EXPECT_EQ(table.sessions_of_url_elicitation("s", "1"), (std::vector<std::string>{"a", "b"}));
  table.remove_url_elicitation("s", "1", "a");
  EXPECT_EQ(table.sessions_of_url_elicitation("s", "1"), (std::vector<std::string>{"b"}));
  EXPECT_EQ(table.sessions_of_url_elicitation("t", "1"), (std::vector<std::string>{"d"}));
}

TEST(SessionTableTest, OldestUrlElicitationIsEvictedBeyondLimit) {
  SessionTable table;
  for (std::size_t i = 0; i <= SessionTable::kMaxUrlElicitations; ++i)
    table.add_url_elicitation("s", std::to_string(i), "a");
  EXPECT_TRUE(table.sessions_of_url_elicitation("s", "0").empty());
  EXPECT_EQ(table.sessions_of_url_elicitation("s", "1").size(), 1u);
  EXPECT_EQ(table.sessions_of_url_elicitation("s", std::to_string(SessionTable::kMaxUrlElicitations)).size(),
            1u);
}

TEST(SessionTableTest, RemovingManyUrlElicitationsDoesNotBlockLoop) {
  const std::string prefix(mcp::kMaxElicitationIdBytes - 10, 'x');
  SessionTable table;
  for (std::size_t i = 0; i < SessionTable::kMaxUrlElicitations; ++i)
    table.add_url_elicitation("s", prefix + std::to_string(i), "a");
  Loop loop;
  bool over = false;
  loop.post([&] {
    for (int i = 0; i < 2000; ++i) table.remove_url_elicitation("s", prefix + std::to_string(i), "a");
    over = true;
  });
  loop.run_until([&] { return over; });
  test::expect_short_turns(loop);
  EXPECT_TRUE(table.sessions_of_url_elicitation("s", prefix + "1999").empty());
  EXPECT_EQ(table.sessions_of_url_elicitation("s", prefix + "2000").size(), 1u);
}

mcp::Context context_of_client(Loop& loop, const json::Raw& capabilities) {
  mcp::Server server("s", "1");
  std::optional<mcp::Context> context;
  mcp::tool(server, "t", "", [&](const mcp::Context& given, const NoArguments&) {
    context = given;
    return "";
  });
  auto [near_end, far_end] = make_channel(loop, loop);
  const std::shared_ptr<Peer> peer = mcp::serve(server, far_end);
  mcp::ClientOptions options;
  options.pinned_revision = mcp::kNewestLegacyRevision;
  options.handlers.capabilities = capabilities;
  const auto client = loop.block_on(mcp::Client::connect_over(near_end, std::move(options)));
  EXPECT_TRUE(client) << client.error().to_string();
  EXPECT_TRUE(loop.block_on((*client)->call_tool("t", raw("{}"))));
  loop.block_on((*client)->close());
  return context.value();
}

// The capabilities of a session may have up to 64 KiB.
TEST(SessionTableTest, CapabilitiesOfManySessionsDoNotBlockLoop) {
  constexpr int kSessions = test::kTurnFactor == 1 ? 2000 : 200;
  std::string values;
  while (values.size() < 60'000) values += "1,";
  Loop loop;
  const mcp::Context context =
      context_of_client(loop, raw(R"({"elicitation":{"x":[)" + values + R"(1]},"sampling":{}})"));
  SessionTable table;
  for (int i = 0; i < kSessions; ++i) table.add(std::to_string(i), [&] { return std::optional(context); });
  std::optional<json::Raw> all;
  loop.turn_meter().reset();
  loop.post([&] { all = table.combined_capabilities([](const mcp::Context&) { return true; }); });
  loop.run_until([&] { return all.has_value(); });
  test::expect_short_turns(loop);
  EXPECT_EQ(all->text(), R"({"sampling":{},"elicitation":{"form":{}}})");
}

TEST(SessionTableTest, UrlElicitationWithLongIdIsIgnored) {
  SessionTable table;
  const std::string longest(mcp::kMaxElicitationIdBytes, 'x');
  table.add_url_elicitation("s", longest, "a");
  table.add_url_elicitation("s", longest + "x", "a");
  EXPECT_EQ(table.sessions_of_url_elicitation("s", longest).size(), 1u);
  EXPECT_TRUE(table.sessions_of_url_elicitation("s", longest + "x").empty());
}

}  // namespace
}  // namespace fairlead::gateway
