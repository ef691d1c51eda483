// Stored lists: what a server listed before is offered while it does not run. Quarantined entries are not.
#include "gateway/endpoint_harness.hpp"

namespace fairlead::gateway {
namespace {

using namespace std::chrono_literals;

class StoredListsTest : public EndpointGatewayTest {};

TEST_F(StoredListsTest, StoredListsAreServedWithoutStartingTheServer) {
  create({"s"});
  put("s", ServerPolicy(), stored_tools({"which", "old"}));
  const auto client = connect("", user("ann"));
  EXPECT_EQ(tools(client), (std::vector<std::string>{"s__which", "s__old"}));
  for (int i = 0; i < 20; ++i) tools(client);
  EXPECT_EQ(instance_count("s"), 0u);
}

TEST_F(StoredListsTest, ListsAreFetchedWhenTheServerRunsNext) {
  create({"s"});
  put("s", ServerPolicy(), stored_tools({"which", "old"}));
  const auto client = connect("", user("ann"));
  EXPECT_EQ(call(client, "s__which"), "0");
  EXPECT_TRUE(gets_tool(client, "s__touch"));
  EXPECT_FALSE(has_tool(client, "s__old"));
  put("s", ServerPolicy(), stored_tools({"which", "old"}));
  EXPECT_FALSE(has_tool(client, "s__old")) << "the server has listed itself since";
  EXPECT_EQ(instance_count("s"), 1u);
}

TEST_F(StoredListsTest, FirstListWaitsForServersWithoutStoredLists) {
  create({"s"});
  put("s");
  EXPECT_TRUE(has_tool(connect("", user("ann")), "s__which"));
}

TEST_F(StoredListsTest, QuarantinedEntriesAreNeitherListedNorCallable) {
  create({"s"});
  put("s", ServerPolicy(), stored_tools({"which", "touch"}, {"which"}));
  for (const auto& [path, prefix] : {std::pair("", "s__"), std::pair("/s", "")}) {
    const auto client = connect(path, admin());
    const std::string name = prefix + std::string("which");
    EXPECT_FALSE(has_tool(client, name));
    EXPECT_EQ(call_error(client, name), "Unknown tool: " + name);
    EXPECT_EQ(call(client, prefix + std::string("touch")), "touched");
  }
  put("s", ServerPolicy(), stored_tools({"which", "touch"}));
  EXPECT_EQ(call(connect("", admin()), "s__which"), "0");
  EXPECT_EQ(instance_count("s"), 1u);
}

TEST_F(StoredListsTest, RenamingDoesNotLiftQuarantine) {
  create({"s"});
  ServerPolicy policy;
  policy.tools.rename = {{"which", "fine"}};
  put("s", policy, stored_tools({"which"}, {"which"}));
  EXPECT_TRUE(tools(connect("", admin())).empty());
  EXPECT_EQ(call_error(connect("", admin()), "s__fine"), "Unknown tool: s__fine");
}

TEST_F(StoredListsTest, ObserverSeesFetchedListsBeforeTheyAreOffered) {
  create({"s"});
  std::vector<std::string> fetched;
  gateway->on_lists([&](const std::string& server, const FetchedLists& lists) {
    fetched.push_back(server + " " + std::to_string(lists.tools ? lists.tools->size() : 0));
    EXPECT_TRUE(lists.resources && lists.prompts);
    return stored_tools({"which"}, {"which"});
  });
  put("s");
  const auto client = connect("", user("ann"));
  EXPECT_TRUE(has_tool(client, "s__touch"));
  EXPECT_FALSE(has_tool(client, "s__which"));
  EXPECT_EQ(call_error(client, "s__which"), "Unknown tool: s__which");
  EXPECT_EQ(fetched, std::vector<std::string>{"s 8"});
}

TEST_F(StoredListsTest, QuarantinedResourceIsUnknownByItsUri) {
  create({"s"});
  auto stored = stored_tools({"which"});
  const auto list_memo = [&](bool quarantined) {
    registry::ListedEntry memo;
    memo.entry = raw(R"({"uri":")" + std::string(kMemo) + R"(","name":"one"})");
    memo.quarantined = quarantined;
    registry::ListedEntry pattern;
    pattern.entry = raw(R"({"uriTemplate":"file://{path}","name":"files"})");
    pattern.quarantined = quarantined;
    stored->resources = {memo};
    stored->templates = {pattern};
  };
  list_memo(true);
  put("s", ServerPolicy(), stored);
  for (const std::string path : {"", "/s"}) {
    const auto client = connect(path, admin());
    EXPECT_TRUE(loop.block_on(client->client->resources())->empty());
    for (const std::string uri : {kMemo, "file://{path}", "file://x"})
      EXPECT_EQ(read_error(client, uri), "Resource not found: no server has `" + uri + "`");
    EXPECT_FALSE(loop.block_on(client->client->subscribe(kMemo)));
  }
  stored = stored_tools({"which"});
  list_memo(false);
  put("s", ServerPolicy(), stored);
  EXPECT_EQ(read_error(connect("", admin()), kMemo), "");
}

TEST_F(StoredListsTest, ObserverQuarantinesEntriesOfUnsharedServers) {
  create({"s"}, Sharing::per_session);
  bool approved = false;
  std::vector<bool> shared;
  gateway->on_lists([&](const std::string&, const FetchedLists& lists) {
    shared.push_back(lists.to_be_stored);
    const bool has_grown = std::ranges::any_of(
        *lists.tools, [](const json::Raw& tool) { return tool.text().contains("grown"); });
    return has_grown && !approved ? stored_tools({"grown"}, {"grown"}) : nullptr;
  });
  put("s");
  const auto client = connect("", user("ann"));
  EXPECT_EQ(call(client, "s__grow"), "grown");
  EXPECT_TRUE(wait_until([&] { return std::ranges::count(shared, false) >= 2; }));
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(has_tool(client, "s__grown"));
  EXPECT_EQ(call_error(client, "s__grown"), "Unknown tool: s__grown");
  EXPECT_TRUE(wait_until([&] { return std::ranges::count(shared, true) >= 2; })) << "not fetched again";
  approved = true;
  put("s");
  EXPECT_TRUE(gets_tool(client, "s__grown"));
  EXPECT_EQ(call(client, "s__grown"), "grown");
}

TEST_F(StoredListsTest, StoredListsDoNotLiftQuarantineOfListsThatTheServerHasReturned) {
  create({"s"});
  bool approved = false;
  int to_be_stored = 0;
  gateway->on_lists([&](const std::string&, const FetchedLists& lists) {
    to_be_stored += lists.to_be_stored ? 1 : 0;
    return approved ? nullptr : stored_tools({"which"}, {"which"});
  });
  put("s");
  const auto client = connect("", user("ann"));
  EXPECT_FALSE(has_tool(client, "s__which"));
  ServerPolicy policy;
  policy.title = "new";
  put("s", policy, stored_tools({"which"}));
  put("s", policy);
  EXPECT_FALSE(has_tool(client, "s__which"));
  EXPECT_EQ(call_error(client, "s__which"), "Unknown tool: s__which");
  approved = true;
  put("s", policy, stored_tools({"which"}));
  EXPECT_EQ(call(client, "s__which"), "0");
  EXPECT_EQ(to_be_stored, 1);
}

TEST_F(StoredListsTest, ListenerOfGatewayWithoutServersIsNotifiedOfTheFirst) {
  create({"s"});
  const auto client = connect("", user("ann"), mcp::kNewestRevision);
  subscribe_to_tool_list(client);
  put("s");
  EXPECT_TRUE(wait_until([&] { return client->count(kToolsChanged) > 0; }));
}

TEST_F(StoredListsTest, RefreshStartsTheServerAndReportsChanges) {
  create({"s"});
  put("s", ServerPolicy(), stored_tools({"which", "old"}));
  const Result<ToolChanges> first = loop.block_on(gateway->refresh("s"));
  ASSERT_TRUE(first) << first.error().to_string();
  EXPECT_EQ(first->tools, 8u);
  EXPECT_EQ(first->removed, std::vector<std::string>{"old"});
  EXPECT_EQ(first->changed, std::vector<std::string>{"which"});
  EXPECT_EQ(first->added.size(), 7u);
  const Result<ToolChanges> second = loop.block_on(gateway->refresh("s"));
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->added.empty() && second->removed.empty() && second->changed.empty());
  EXPECT_FALSE(loop.block_on(gateway->refresh("none")));
}

TEST_F(StoredListsTest, RefreshFailsWhenTheServerCannotStart) {
  create({"s"});
  failing_starts["s"] = 1000;
  put("s", ServerPolicy(), stored_tools({"which"}));
  const Result<ToolChanges> refreshed = loop.block_on(gateway->refresh("s"));
  ASSERT_FALSE(refreshed);
  EXPECT_TRUE(has_tool(connect("", user("ann")), "s__which")) << "the stored lists stay";
}

TEST_F(StoredListsTest, DisabledServerIsNotOfferedUntilItIsEnabled) {
  create({"s"});
  put("s", ServerPolicy(), stored_tools({"which"}));
  const auto client = connect("", user("ann"));
  specs["s"].enabled = false;
  put("s", ServerPolicy(), stored_tools({"which"}));
  EXPECT_TRUE(tools(client).empty());
  specs["s"].enabled = true;
  put("s", ServerPolicy(), stored_tools({"which"}));
  EXPECT_EQ(tools(client), std::vector<std::string>{"s__which"});
  EXPECT_EQ(instance_count("s"), 0u);
  EXPECT_EQ(call(client, "s__which"), "0");
}

TEST_F(StoredListsTest, RulesOfLongListsAreAppliedInSlices) {
  create({"s"});
  std::vector<std::string> names;
  for (int i = 0; i < 6000; ++i) names.push_back("t" + std::to_string(i));
  put("s", ServerPolicy(), stored_tools(names));
  const auto client = connect("", user("ann"));
  ServerPolicy policy;
  policy.tools.deny = {"t1*"};
  put("s", policy, stored_tools(names));
  EXPECT_EQ(call_error(client, "s__t1"), "Unknown tool: s__t1");
  EXPECT_TRUE(gets_tool(client, "s__t2"));
  EXPECT_EQ(call_error(client, "s__t1"), "Unknown tool: s__t1");
}

}  // namespace
}  // namespace fairlead::gateway
