// What the clients of an endpoint see: the servers it selects, as far as they are visible to the client.
#include "gateway/endpoint_harness.hpp"

namespace fairlead::gateway {
namespace {

using namespace std::chrono_literals;

class EndpointViewsTest : public EndpointGatewayTest {};

TEST_F(EndpointViewsTest, HiddenServerExistsForAdministratorsOnly) {
  create({"open", "secret"});
  put("open");
  put("secret", visible_to(Visibility::hidden));
  const auto operator_client = connect("", admin());
  EXPECT_TRUE(has_tool(operator_client, "secret__which"));
  EXPECT_EQ(call(operator_client, "secret__which"), "0");
  for (const PrincipalPtr& principal : {user("ann"), Principal::anonymous()}) {
    const auto client = connect("", principal);
    EXPECT_TRUE(has_tool(client, "open__which"));
    EXPECT_FALSE(has_tool(client, "secret__which"));
    EXPECT_EQ(call_error(client, "secret__which"), "Unknown tool: secret__which");
    EXPECT_EQ(call_error(client, "nosuch__which"), "Unknown tool: nosuch__which");
  }
}

TEST_F(EndpointViewsTest, ServerOfUserExistsForItsOwnerAndAdministrators) {
  create({"mine"});
  put("mine", visible_to(Visibility::user, "ann"));
  EXPECT_TRUE(has_tool(connect("", user("ann")), "mine__which"));
  EXPECT_TRUE(has_tool(connect("", admin()), "mine__which"));
  EXPECT_FALSE(has_tool(connect("", user("bob")), "mine__which"));
  EXPECT_FALSE(has_tool(connect("", Principal::anonymous()), "mine__which"));
}

TEST_F(EndpointViewsTest, ResourcesOfInvisibleServersAreUnknown) {
  create({"secret"});
  put("secret", visible_to(Visibility::hidden));
  EXPECT_EQ(read_error(connect("", admin()), kMemo), "");
  const auto client = connect("", user("ann"));
  EXPECT_EQ(read_error(client, kMemo), "Resource not found: no server has `" + std::string(kMemo) + "`");
  EXPECT_FALSE(loop.block_on(client->client->subscribe(kMemo)));
  EXPECT_TRUE(loop.block_on(client->client->resources())->empty());
}

TEST_F(EndpointViewsTest, FailureOfInvisibleServerIsNotReported) {
  create({"open", "secret"});
  failing_starts["secret"] = 1000;
  put("open");
  put("secret", visible_to(Visibility::hidden));
  const auto ann = connect("", user("ann"));
  EXPECT_TRUE(has_tool(ann, "open__which"));
  EXPECT_EQ(call_error(ann, "secret__which"), "Unknown tool: secret__which");
  EXPECT_EQ(read_error(ann, "other://x").find("secret"), std::string::npos);
  const Result<HealthPtr> health = loop.block_on(gateway->health_for(*user("ann"), std::stop_token()));
  ASSERT_TRUE(health);
  EXPECT_EQ((*health)->text().find("secret"), std::string::npos);
  EXPECT_EQ((*health)->status, HealthStatus::ok);
  const Result<HealthPtr> all = loop.block_on(gateway->health_for(*admin(), std::stop_token()));
  ASSERT_TRUE(all);
  EXPECT_NE((*all)->text().find("secret"), std::string::npos);
}

TEST_F(EndpointViewsTest, VisibilityChangesAtOnceForRunningSessions) {
  create({"s"});
  put("s");
  const auto ann = connect("", user("ann"));
  EXPECT_EQ(call(ann, "s__which"), "0");
  subscribe(ann);
  put("s", visible_to(Visibility::hidden));
  EXPECT_FALSE(has_tool(ann, "s__which"));
  EXPECT_EQ(call_error(ann, "s__which"), "Unknown tool: s__which");
  const auto root = connect("", admin());
  ann->received.clear();
  EXPECT_EQ(call(root, "s__touch"), "touched");
  for (int i = 0; i < 3; ++i) tools(ann);
  EXPECT_EQ(ann->count(kUpdated), 0) << "its subscription is still served";
  put("s");
  EXPECT_EQ(call(ann, "s__which"), "0");
  EXPECT_EQ(instance_count("s"), 1u) << "a change of the policy has restarted the server";
}

TEST_F(EndpointViewsTest, OnlyClientsThatSeeTheServerAreNotified) {
  create({"open", "secret"});
  put("open");
  put("secret", visible_to(Visibility::hidden));
  const auto root = connect("", admin());
  const auto ann = connect("", user("ann"));
  tools(root);
  tools(ann);
  EXPECT_EQ(call(root, "secret__grow"), "grown");
  EXPECT_TRUE(wait_until([&] { return root->count(kToolsChanged) == 1; }));
  tools(ann);
  EXPECT_EQ(ann->count(kToolsChanged), 0);
}

TEST_F(EndpointViewsTest, ServerPerUserRejectsClientsWithoutUser) {
  create({"s"}, Sharing::per_user);
  put("s");
  EXPECT_EQ(call(connect("", user("ann")), "s__which"), "1");
  const auto anonymous = connect("", Principal::anonymous());
  EXPECT_NE(call_error(anonymous, "s__which").find("per_user"), std::string::npos);
  EXPECT_NE(read_error(anonymous, kMemo).find("per_user"), std::string::npos);
}

// ---- endpoints -------------------------------------------------------------------------------------------

TEST_F(EndpointViewsTest, EndpointOffersItsSelection) {
  create({"alpha", "beta", "tagged"});
  put("alpha");
  put("beta");
  ServerPolicy policy;
  policy.tags = {"ops"};
  put("tagged", policy);
  registry::Endpoint ops = endpoint("ops");
  ops.servers = {"al*"};
  ops.tags = {"ops"};
  ASSERT_TRUE(gateway->endpoints().put(ops));
  for (const mcp::Revision revision : {mcp::kNewestLegacyRevision, mcp::kNewestRevision}) {
    const auto client = connect("/e/ops", user("ann"), revision);
    ASSERT_TRUE(client);
    EXPECT_TRUE(has_tool(client, "alpha__which"));
    EXPECT_TRUE(has_tool(client, "tagged__which"));
    EXPECT_FALSE(has_tool(client, "beta__which"));
    EXPECT_EQ(call(client, "tagged__which"), "0");
    EXPECT_EQ(call_error(client, "beta__which"), "Unknown tool: beta__which");
  }
  EXPECT_TRUE(has_tool(connect("", user("ann")), "beta__which"));
}

TEST_F(EndpointViewsTest, EndpointNeverOffersInvisibleServers) {
  create({"secret"});
  put("secret", visible_to(Visibility::hidden));
  registry::Endpoint all = endpoint("all");
  all.servers = {"*"};
  ASSERT_TRUE(gateway->endpoints().put(all));
  EXPECT_TRUE(tools(connect("/e/all", user("ann"))).empty());
  EXPECT_FALSE(tools(connect("/e/all", admin())).empty());
  EXPECT_FALSE(gateway->endpoints().find("/secret", *user("ann")));
  EXPECT_TRUE(gateway->endpoints().find("/secret", *admin()));
}

TEST_F(EndpointViewsTest, UnknownAndForbiddenEndpointsFailAlike) {
  create({"s"});
  put("s", visible_to(Visibility::hidden));
  registry::Endpoint team = endpoint("team");
  team.users = {"ann"};
  team.groups = {"g"};
  ASSERT_TRUE(gateway->endpoints().put(team));
  EXPECT_TRUE(gateway->endpoints().find("/e/team", *user("ann")));
  EXPECT_TRUE(gateway->endpoints().find("/e/team", *admin()));
  Principal member = *user("eve");
  member.groups = {"g"};
  EXPECT_TRUE(gateway->endpoints().find("/e/team", member));
  for (const std::string path :
       {"/e/team", "/e/none", "/s", "/none", "/e", "/servers", "/e/", "/e/default"}) {
    const auto found = gateway->endpoints().find(path, *user("bob"));
    ASSERT_FALSE(found) << path;
    EXPECT_EQ(found.error().detail().failure_code, "unknown_endpoint");
    EXPECT_EQ(found.error().message(), "no endpoint at /mcp" + path);
  }
}

TEST_F(EndpointViewsTest, ScopesOfTokenRestrictEndpoints) {
  create({"s"});
  put("s");
  ASSERT_TRUE(gateway->endpoints().put(endpoint("x")));
  const auto may_use = [&](const std::string& path, std::vector<std::string> scopes) {
    Principal principal = *user("ann");
    principal.scopes = std::move(scopes);
    return gateway->endpoints().find(path, principal).has_value();
  };
  for (const std::string path : {"", "/e/x", "/s"}) {
    EXPECT_TRUE(may_use(path, {}));
    EXPECT_TRUE(may_use(path, {"mcp"}));
    EXPECT_FALSE(may_use(path, {"admin"}));
  }
  EXPECT_TRUE(may_use("/e/x", {"endpoint:x"}));
  EXPECT_FALSE(may_use("", {"endpoint:x"}));
  EXPECT_TRUE(may_use("", {"endpoint:default"}));
  EXPECT_TRUE(may_use("/s", {"server:s"}));
  EXPECT_FALSE(may_use("/e/x", {"server:s"}));
}

TEST_F(EndpointViewsTest, ChangedEndpointAppliesToRunningSessions) {
  create({"a", "b"});
  put("a");
  put("b");
  registry::Endpoint one = endpoint("one");
  one.servers = {"a"};
  ASSERT_TRUE(gateway->endpoints().put(one));
  const auto client = connect("/e/one", user("ann"));
  const auto other = connect("", user("ann"));
  EXPECT_TRUE(has_tool(client, "a__which"));
  tools(other);
  one.servers = {"b"};
  ASSERT_TRUE(gateway->endpoints().put(one));
  EXPECT_TRUE(wait_until([&] { return client->count(kToolsChanged) == 1; }));
  EXPECT_EQ(other->count(kToolsChanged), 0);
  EXPECT_TRUE(has_tool(client, "b__which"));
  EXPECT_EQ(call_error(client, "a__which"), "Unknown tool: a__which");
}

TEST_F(EndpointViewsTest, AccessIsCheckedAgainAfterEndpointChanges) {
  create({"s"});
  put("s");
  int reduced = 0;
  gateway->endpoints().on_access_reduced([&] { ++reduced; });
  ASSERT_TRUE(gateway->endpoints().put(endpoint("x")));
  const auto application = *gateway->endpoints().find("/e/x", *user("ann"));
  const auto server_application = *gateway->endpoints().find("/s", *user("ann"));
  EXPECT_TRUE(gateway->endpoints().allows(*application, *user("ann")));
  registry::Endpoint closed = endpoint("x");
  closed.users = {"bob"};
  ASSERT_TRUE(gateway->endpoints().put(closed));
  EXPECT_FALSE(gateway->endpoints().allows(*application, *user("ann")));
  EXPECT_TRUE(gateway->endpoints().allows(*application, *user("bob")));
  gateway->endpoints().remove("x");
  EXPECT_FALSE(gateway->endpoints().allows(*application, *user("bob")));
  EXPECT_TRUE(gateway->endpoints().allows(*server_application, *user("ann")));
  put("s", visible_to(Visibility::hidden));
  EXPECT_FALSE(gateway->endpoints().allows(*server_application, *user("ann")));
  EXPECT_GE(reduced, 3);
}

TEST_F(EndpointViewsTest, UnusedFrontsAreDropped) {
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back("s" + std::to_string(i));
  create(names);
  for (const std::string& name : names) put(name, ServerPolicy(), stored_tools({"t"}));
  std::vector<std::weak_ptr<transport::Application>> fronts;
  for (const std::string& name : names)
    fronts.push_back(*gateway->endpoints().find("/" + name, *user("ann")));
  EXPECT_EQ(std::ranges::count_if(fronts, [](const auto& used) { return !used.expired(); }), 64);
  const auto client = connect("/s0", user("ann"));
  EXPECT_EQ(tools(client), std::vector<std::string>{"t"});
}

}  // namespace
}  // namespace fairlead::gateway
