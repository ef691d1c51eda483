// Rules for tools: those of a server, those of an endpoint, and the names that result.
#include "gateway/endpoint_harness.hpp"

namespace fairlead::gateway {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

class EndpointNamesTest : public EndpointGatewayTest {
 protected:
  static ServerPolicy rules(const registry::ToolRules& tools) {
    ServerPolicy policy;
    policy.tools = tools;
    return policy;
  }
  bool lists(const std::string& path, const std::string& tool) {
    return has_tool(connect(path, user("ann")), tool);
  }
  std::string call_at(const std::string& path, const std::string& tool) {
    return call(connect(path, user("ann")), tool);
  }
  static std::string unknown(const std::string& tool) { return "<Unknown tool: " + tool + ">"; }
};

TEST_F(EndpointNamesTest, DeniedToolsDoNotExistInAnyView) {
  create({"s"});
  registry::ToolRules tools;
  tools.deny = {"wh*"};
  put("s", rules(tools));
  for (const auto& [path, tool] : {std::pair("", "s__which"), std::pair("/s", "which")}) {
    EXPECT_FALSE(lists(path, tool));
    EXPECT_EQ(call_at(path, tool), unknown(tool));
  }
  EXPECT_EQ(call_at("", "s__touch"), "touched");
  EXPECT_EQ(call_at("/s", "touch"), "touched");
}

TEST_F(EndpointNamesTest, OnlyAllowedToolsExist) {
  create({"s"});
  registry::ToolRules tools;
  tools.allow = {"which", "touch"};
  tools.deny = {"touch"};
  put("s", rules(tools));
  EXPECT_EQ(this->tools(connect("", user("ann"))), Names{"s__which"});
  EXPECT_EQ(this->tools(connect("/s", user("ann"))), Names{"which"});
}

TEST_F(EndpointNamesTest, HiddenToolIsCallableButNotListed) {
  create({"s"});
  registry::ToolRules tools;
  tools.hide = {"which"};
  put("s", rules(tools));
  EXPECT_FALSE(lists("", "s__which"));
  EXPECT_FALSE(lists("/s", "which"));
  EXPECT_EQ(call_at("", "s__which"), "0");
  EXPECT_EQ(call_at("/s", "which"), "0");
}

TEST_F(EndpointNamesTest, RenamedToolHasItsNewNameEverywhere) {
  create({"s"});
  registry::ToolRules tools;
  tools.rename = {{"which", "number"}};
  put("s", rules(tools));
  EXPECT_EQ(call_at("", "s__number"), "0");
  EXPECT_EQ(call_at("", "s__which"), unknown("s__which"));
  EXPECT_EQ(call_at("/s", "number"), "0");
  EXPECT_EQ(call_at("/s", "which"), unknown("which"));
  EXPECT_TRUE(lists("", "s__number"));
  EXPECT_TRUE(lists("/s", "number"));
}

TEST_F(EndpointNamesTest, RenamingLiftsNoOtherRule) {
  create({"s"});
  registry::ToolRules tools;
  tools.deny = {"which"};
  tools.hide = {"touch"};
  tools.rename = {{"which", "fine"}, {"touch", "visible"}};
  put("s", rules(tools));
  EXPECT_EQ(call_at("", "s__fine"), unknown("s__fine"));
  EXPECT_FALSE(lists("", "s__visible"));
  EXPECT_EQ(call_at("", "s__visible"), "touched");
  registry::Endpoint denying = endpoint("denying");
  denying.deny = {"s__level"};
  ASSERT_TRUE(gateway->endpoints().put(denying));
  tools.rename = {{"level", "innocent"}};
  put("s", rules(tools));
  EXPECT_EQ(call_at("/e/denying", "s__innocent"), unknown("s__innocent"));
}

TEST_F(EndpointNamesTest, NewNameThatIsTakenIsNotUsed) {
  create({"s"});
  registry::ToolRules tools;
  tools.rename = {{"touch", "which"}, {"ask", "same"}, {"say", "same"}};
  put("s", rules(tools));
  EXPECT_EQ(call_at("", "s__which"), "0") << "the tool that is not renamed keeps its name";
  EXPECT_EQ(call_at("/s", "which"), "0");
  EXPECT_EQ(call_at("", "s__touch"), unknown("s__touch"));
  EXPECT_NE(call_at("", "s__same"), "said") << "the first by its own name gets the new name";
  EXPECT_TRUE(lists("", "s__same"));
}

TEST_F(EndpointNamesTest, ToolsCanSwapNames) {
  create({"s"});
  registry::ToolRules tools;
  tools.rename = {{"touch", "which"}, {"which", "touch"}};
  put("s", rules(tools));
  EXPECT_EQ(call_at("", "s__which"), "touched");
  EXPECT_EQ(call_at("", "s__touch"), "0");
}

TEST_F(EndpointNamesTest, ChangedRulesApplyAtOnceWithoutRestart) {
  create({"s"});
  put("s");
  const auto client = connect("", user("ann"));
  EXPECT_EQ(call(client, "s__which"), "0");
  registry::ToolRules tools;
  tools.deny = {"which"};
  put("s", rules(tools));
  EXPECT_EQ(call(client, "s__which"), unknown("s__which"));
  EXPECT_TRUE(wait_until([&] { return client->count(kToolsChanged) == 1; }));
  put("s");
  EXPECT_EQ(call(client, "s__which"), "0");
  EXPECT_EQ(instance_count("s"), 1u);
}

TEST_F(EndpointNamesTest, RulesApplyToUnsharedServersOfRunningSessions) {
  create({"s"}, Sharing::per_session);
  put("s");
  const auto client = connect("", user("ann"));
  EXPECT_EQ(call(client, "s__grow"), "grown");
  EXPECT_TRUE(gets_tool(client, "s__grown"));
  registry::ToolRules tools;
  tools.deny = {"grown"};
  put("s", rules(tools));
  EXPECT_EQ(call(client, "s__grown"), unknown("s__grown"));
  EXPECT_FALSE(has_tool(client, "s__grown"));
}

// ---- endpoints -------------------------------------------------------------------------------------------

TEST_F(EndpointNamesTest, EndpointSelectsAndRenamesTools) {
  create({"s", "t"});
  put("s");
  put("t");
  registry::Endpoint small = endpoint("small");
  small.tools = {"s__*"};
  small.deny = {"s__touch"};
  small.rename = {{"s__which", "number"}, {"t__which", "gone"}};
  ASSERT_TRUE(gateway->endpoints().put(small));
  EXPECT_TRUE(lists("/e/small", "number"));
  EXPECT_EQ(call_at("/e/small", "number"), "0");
  EXPECT_EQ(call_at("/e/small", "s__which"), unknown("s__which"));
  EXPECT_EQ(call_at("/e/small", "s__touch"), unknown("s__touch"));
  EXPECT_EQ(call_at("/e/small", "gone"), unknown("gone"));
  EXPECT_EQ(call_at("/e/small", "t__which"), unknown("t__which"));
  EXPECT_EQ(call_at("", "s__which"), "0");
}

TEST_F(EndpointNamesTest, NewNameAtEndpointNeverShadowsToolOfOtherServer) {
  create({"s", "t"});
  put("s");
  put("t");
  registry::Endpoint clashing = endpoint("clashing");
  clashing.rename = {{"s__touch", "t__which"}, {"s__level", "both"}, {"t__touch", "both"}};
  ASSERT_TRUE(gateway->endpoints().put(clashing));
  const auto client = connect("/e/clashing", user("ann"));
  EXPECT_EQ(call(client, "t__which"), "0");
  EXPECT_EQ(call(client, "both"), "info") << "the first by public name gets the new name";
  const Names names = tools(client);
  EXPECT_EQ(std::ranges::count(names, "t__which"), 1);
  EXPECT_EQ(std::ranges::count(names, "both"), 1);
  EXPECT_EQ(std::ranges::count(names, "s__touch"), 0);
}

TEST_F(EndpointNamesTest, ServerKeepsItsOwnNamesAtItsEndpoint) {
  create({"s"});
  put("s");
  for (const mcp::Revision revision : {mcp::kNewestLegacyRevision, mcp::kNewestRevision}) {
    const auto client = connect("/s", user("ann"), revision);
    EXPECT_TRUE(has_tool(client, "which"));
    EXPECT_FALSE(has_tool(client, "s__which"));
    EXPECT_EQ(call(client, "which"), "0");
    EXPECT_EQ(call(client, "s__which"), unknown("s__which"));
    EXPECT_EQ(read_error(client, kMemo), "");
  }
}

TEST_F(EndpointNamesTest, CallBeforeFirstListWaitsForTheServerAtEveryEndpoint) {
  create({"s"});
  start_events["s"];
  put("s");
  registry::Endpoint renaming = endpoint("renaming");
  renaming.rename = {{"s__which", "number"}};
  ASSERT_TRUE(gateway->endpoints().put(renaming));
  std::string at_server;
  std::string at_endpoint;
  loop.spawn(call_for_text(connect("/s", user("ann"))->client, "which", &at_server));
  loop.spawn(call_for_text(connect("/e/renaming", user("ann"))->client, "number", &at_endpoint));
  start_events["s"].set();
  EXPECT_TRUE(wait_until([&] { return !at_server.empty() && !at_endpoint.empty(); }));
  EXPECT_EQ(at_server, "0");
  EXPECT_EQ(at_endpoint, "0");
}

TEST_F(EndpointNamesTest, ModeDiscoverListsOnlyPinnedTools) {
  create({"s"});
  put("s");
  registry::Endpoint discover = endpoint("find");
  discover.mode = registry::EndpointMode::discover;
  discover.pinned = {"s__which"};
  ASSERT_TRUE(gateway->endpoints().put(discover));
  const auto client = connect("/e/find", user("ann"));
  const Names names = tools(client);
  EXPECT_EQ(std::ranges::count(names, "s__which"), 1);
  EXPECT_EQ(std::ranges::count(names, "s__touch"), 0);
  EXPECT_EQ(call(client, "s__touch"), "touched");
}

}  // namespace
}  // namespace fairlead::gateway
