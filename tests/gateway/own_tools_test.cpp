// Tools of the gateway itself, listed with those of servers.
#include "gateway/harness.hpp"

namespace fairlead::gateway {
namespace {

using namespace std::chrono_literals;

class OwnToolsTest : public GatewayTest {
 protected:
  static Task<Result<mcp::ToolResult>> who(mcp::Context context, json::Raw) {
    co_return mcp::ToolResult::text("called by " + context.principal()->user);
  }
  Result<void> add_tool(const std::string& name) {
    mcp::ToolSpec spec;
    spec.name = name;
    spec.description = "Returns the user of the caller";
    spec.input_schema = raw(R"({"type":"object","properties":{"n":{"type":"integer"}}})");
    return gateway->add_tool(spec, mcp::Server::CoroutineTool(&who));
  }
};

TEST_F(OwnToolsTest, OwnToolIsListedAndCalledInEveryRevision) {
  add("s", Sharing::shared);
  for (const mcp::Revision revision : {mcp::kNewestLegacyRevision, mcp::kNewestRevision}) {
    const auto client = connect_client(revision, "ann");
    if (revision == mcp::kNewestLegacyRevision) {
      ASSERT_TRUE(add_tool("who_asks"));
    }
    const std::vector<std::string> names = tools(client);
    EXPECT_EQ(std::ranges::count(names, "who_asks"), 1);
    EXPECT_EQ(std::ranges::count(names, "s__which"), 1);
    EXPECT_EQ(call(client, "who_asks"), "called by ann");
    EXPECT_EQ(call(client, "s__which"), "0");
  }
}

TEST_F(OwnToolsTest, ClientsAreNotifiedWhenOwnToolIsAddedOrRemoved) {
  add("s", Sharing::shared);
  const auto client = connect_client();
  EXPECT_EQ(std::ranges::count(tools(client), "who_asks"), 0);
  ASSERT_TRUE(add_tool("who_asks"));
  loop.run_until([&] { return client->count("notifications/tools/list_changed ") == 1; });
  EXPECT_TRUE(gateway->remove_tool("who_asks"));
  EXPECT_FALSE(gateway->remove_tool("who_asks"));
  loop.run_until([&] { return client->count("notifications/tools/list_changed ") == 2; });
  EXPECT_EQ(std::ranges::count(tools(client), "who_asks"), 0);
  EXPECT_NE(call(client, "who_asks").find("Unknown tool"), std::string::npos);
}

// The gateway stores the encoded page of a list that is requested repeatedly.
TEST_F(OwnToolsTest, RepeatedListChangesWithOwnTools) {
  add("s", Sharing::shared);
  for (const mcp::Revision revision : {mcp::kNewestLegacyRevision, mcp::kNewestRevision}) {
    const auto client = connect_client(revision, "ann");
    const std::vector<std::string> names = tools(client);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(tools(client), names);
    ASSERT_TRUE(add_tool("who_asks"));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(std::ranges::count(tools(client), "who_asks"), 1);
    ASSERT_TRUE(gateway->remove_tool("who_asks"));
    EXPECT_EQ(tools(client), names);
  }
}

TEST_F(OwnToolsTest, NameWithSeparatorIsRejected) {
  add("s", Sharing::shared);
  const auto client = connect_client();
  const Result<void> refused = add_tool("s__which");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::validation);
  EXPECT_NE(refused.error().message().find("`__`"), std::string::npos);
  ASSERT_TRUE(add_tool("who_asks"));
  EXPECT_FALSE(add_tool("who_asks")) << "duplicate name";
}

TEST_F(OwnToolsTest, ArgumentsThatViolateSchemaAreRejected) {
  const auto client = connect_client(mcp::Revision::r2025_06_18);
  ASSERT_TRUE(add_tool("who_asks"));
  const Result<mcp::ToolResult> refused =
      loop.block_on(client->client->call_tool("who_asks", raw(R"({"n":"no number"})")));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail().rpc_code, rpc::kInvalidParams);
}

}  // namespace
}  // namespace fairlead::gateway
