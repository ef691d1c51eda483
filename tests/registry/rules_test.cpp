#include "registry/rules.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "registry/codes.hpp"
#include "registry/rules_fixture.hpp"

namespace fairlead::registry {
namespace {

// The kinds of servers that the rules distinguish for Ann.
std::string kind_of(const Server& server) {
  if (server.visibility == Visibility::visible) return "visible";
  if (server.visibility == Visibility::hidden || server.owner != "ann") return "unseen";
  return server.transport() == "http" ? "own http" : "own stdio";
}

//                   list, read, create, update, remove, call, operate, administer
const std::map<std::string, std::map<std::string, std::string>>& server_table() {
  static const std::map<std::string, std::map<std::string, std::string>> kTable = {
      {"anonymous",
       {{"visible", "-----+--"},
        {"own http", "00-00000"},
        {"own stdio", "00-00000"},
        {"unseen", "00-00000"}}},
      {"local",
       {{"visible", "-----+--"},
        {"own http", "00-00000"},
        {"own stdio", "00-00000"},
        {"unseen", "00-00000"}}},
      {"ann",
       {{"visible", "++---+--"},
        {"own http", "+++++++-"},
        {"own stdio", "++---+--"},
        {"unseen", "00-00000"}}},
      {"ann reading",
       {{"visible", "++------"},
        {"own http", "++------"},
        {"own stdio", "++------"},
        {"unseen", "00-00000"}}},
      {"ann calling",
       {{"visible", "-----+--"},
        {"own http", "-----+--"},
        {"own stdio", "-----+--"},
        {"unseen", "00-00000"}}},
      {"ann calling files",
       {{"visible", "-----+--"},
        {"own http", "-----+--"},
        {"own stdio", "-----+--"},
        {"unseen", "00-00000"}}},
      {"ann calling others",
       {{"visible", "--------"},
        {"own http", "--------"},
        {"own stdio", "--------"},
        {"unseen", "00-00000"}}},
      {"admin",
       {{"visible", "++++++++"},
        {"own http", "++++++++"},
        {"own stdio", "++++++++"},
        {"unseen", "++++++++"}}},
      {"admin reading",
       {{"visible", "++------"},
        {"own http", "++------"},
        {"own stdio", "++------"},
        {"unseen", "++------"}}},
      {"admin of servers",
       {{"visible", "+++++-++"},
        {"own http", "+++++-++"},
        {"own stdio", "+++++-++"},
        {"unseen", "+++++-++"}}},
      {"admin of users",
       {{"visible", "--------"},
        {"own http", "--------"},
        {"own stdio", "--------"},
        {"unseen", "--------"}}},
      {"admin calling",
       {{"visible", "-----+--"},
        {"own http", "-----+--"},
        {"own stdio", "-----+--"},
        {"unseen", "-----+--"}}},
      {"bootstrap",
       {{"visible", "++++++++"},
        {"own http", "++++++++"},
        {"own stdio", "++++++++"},
        {"unseen", "++++++++"}}}};
  return kTable;
}

TEST(RulesTest, EveryOperationOnEveryServerByEveryClientIsDecidedAsInTheTable) {
  int count = 0;
  for (const auto& [name, client] : clients()) {
    for (const Visibility visibility : {Visibility::hidden, Visibility::visible, Visibility::user}) {
      for (const char* owner : {"", "ann", "bob", "admin", "admin-token"}) {
        for (const bool is_http : {false, true}) {
          const Server row = server_with(visibility, owner, is_http);
          EXPECT_EQ(outcomes([&](Operation operation) { return decide(*client, operation, row); }),
                    server_table().at(name).at(kind_of(row)))
              << name << ", " << row.transport() << ", " << to_string(visibility) << ", owner `" << owner
              << "`";
          count += static_cast<int>(std::size(kOperations));
        }
      }
    }
  }
  EXPECT_EQ(count, 13 * 3 * 5 * 2 * 8);
}

TEST(RulesTest, EmptyOwnerIsNobody) {
  Principal nobody = *registry_user("ann", Role::user, {});
  nobody.user.clear();
  const Server row = server_with(Visibility::user, "", true);
  EXPECT_FALSE(decide(nobody, Operation::call, row));
  EXPECT_FALSE(decide(*Principal::anonymous(), Operation::call, row));
}

TEST(RulesTest, UserOfAnotherIssuerOwnsNothing) {
  Principal foreign = *registry_user("ann", Role::user, {});
  foreign.issuer = "https://idp.example";
  EXPECT_FALSE(decide(foreign, Operation::call, server_with(Visibility::user, "ann", true)).visible);
  EXPECT_TRUE(decide(foreign, Operation::call, server_with(Visibility::visible, "", true)));
  EXPECT_FALSE(decide(foreign, Operation::read, server_with(Visibility::visible, "", true)));
}

TEST(RulesTest, ErrorOfARowThatIsNotVisibleIsThatOfARowThatDoesNotExist) {
  const Server row = server_with(Visibility::hidden, "", true);
  const Error concealed =
      decide(*registry_user("ann", Role::user, {}), Operation::read, row).error("server `x`");
  EXPECT_EQ(concealed.detail().failure_code, kNotFound);
  EXPECT_EQ(concealed.message(), "server `x` does not exist");
  const Error forbidden =
      decide(*registry_user("root", Role::admin, {"mcp"}), Operation::read, row).error("server `x`");
  EXPECT_EQ(forbidden.detail().failure_code, kForbidden);
  EXPECT_EQ(forbidden.kind(), ErrorKind::authorization);
  EXPECT_EQ(forbidden.message(),
            "server `x` is not accessible: the token lacks the scope admin:servers:read");
}

Endpoint endpoint_for(std::vector<std::string> users, std::vector<std::string> groups, bool enabled = true) {
  Endpoint row;
  row.name = "team";
  row.users = std::move(users);
  row.groups = std::move(groups);
  row.enabled = enabled;
  return row;
}

std::string endpoint_outcomes(const Principal& principal, const Endpoint& row) {
  return outcomes([&](Operation operation) { return decide(principal, operation, row); });
}

TEST(RulesTest, EndpointIsUsedByThoseOnItsLists) {
  const auto all = clients();
  const PrincipalPtr member = registry_user("mia", Role::user, {}, {"g1", "g2"});
  const Endpoint open = endpoint_for({}, {});
  EXPECT_EQ(endpoint_outcomes(*all.at("anonymous"), open), "-----+--");
  EXPECT_EQ(endpoint_outcomes(*all.at("ann"), open), "++---+--");
  EXPECT_EQ(endpoint_outcomes(*all.at("admin"), open), "++++++++");
  for (const Endpoint& closed :
       {endpoint_for({"mia"}, {}), endpoint_for({}, {"g2"}), endpoint_for({"x"}, {"g1"})}) {
    EXPECT_EQ(endpoint_outcomes(*member, closed), "++---+--");
    EXPECT_EQ(endpoint_outcomes(*all.at("ann"), closed), "00-00000");
    EXPECT_EQ(endpoint_outcomes(*all.at("anonymous"), closed), "00-00000");
    EXPECT_EQ(endpoint_outcomes(*all.at("local"), closed), "00-00000");
    EXPECT_EQ(endpoint_outcomes(*all.at("bootstrap"), closed), "++++++++");
  }
}

TEST(RulesTest, EndpointWhoseListsNameOnlyRemovedAccountsAdmitsNobody) {
  const Endpoint row = endpoint_for({"removed"}, {"removed"});
  for (const char* name : {"anonymous", "local", "ann"})
    EXPECT_FALSE(decide(*clients().at(name), Operation::call, row).visible) << name;
}

TEST(RulesTest, UserNamedLikeAGroupIsNotAdmitted) {
  EXPECT_FALSE(decide(*registry_user("g1", Role::user, {}), Operation::call, endpoint_for({}, {"g1"})));
  EXPECT_FALSE(
      decide(*registry_user("ann", Role::user, {}, {"mia"}), Operation::call, endpoint_for({"mia"}, {})));
  Principal foreign = *registry_user("ann", Role::user, {}, {"g1"});
  foreign.issuer = "https://idp.example";
  EXPECT_FALSE(decide(foreign, Operation::call, endpoint_for({"ann"}, {"g1"})));
}

TEST(RulesTest, DisabledEndpointIsUsedByNobody) {
  const Endpoint row = endpoint_for({}, {}, false);
  EXPECT_EQ(outcome(decide(*clients().at("ann"), Operation::call, row)), '0');
  EXPECT_EQ(outcome(decide(*clients().at("admin"), Operation::call, row)), '-');
}

TEST(RulesTest, EndpointNeverWidensWhatAClientSees) {
  const Endpoint team = endpoint_for({}, {});
  const auto call = [&](const Scopes& scopes, const Server& server, const Endpoint* endpoint) {
    return outcome(decide_call(*registry_user("ann", Role::user, scopes), server, endpoint));
  };
  const Server visible = server_with(Visibility::visible, "", false);
  const Server hidden = server_with(Visibility::hidden, "", false);
  EXPECT_EQ(call({}, hidden, &team), '0');
  EXPECT_EQ(call({"endpoint:team"}, hidden, &team), '0');
  EXPECT_EQ(call({"endpoint:team"}, visible, &team), '+');
  EXPECT_EQ(call({"endpoint:team"}, visible, nullptr), '-');
  EXPECT_EQ(call({"endpoint:other"}, visible, &team), '-');
  EXPECT_EQ(call({"server:files"}, visible, &team), '+');
  EXPECT_EQ(call({"server:files"}, visible, nullptr), '+');
  EXPECT_EQ(call({"server:other"}, visible, &team), '-');
  EXPECT_EQ(call({"admin"}, visible, &team), '-');
  const auto use = [&](const Scopes& scopes) {
    return outcome(decide(*registry_user("ann", Role::user, scopes), Operation::call, team));
  };
  EXPECT_EQ(use({"endpoint:team"}), '+');
  EXPECT_EQ(use({"server:files"}), '-');
  EXPECT_EQ(use({"mcp"}), '+');
  EXPECT_EQ(use({"endpoint:other"}), '-');
  EXPECT_EQ(use({"admin"}), '-');
}

// The gateway knows a server's visibility and owner, and not its row.
TEST(RulesTest, ShortFormsForTheGatewayDecideLikeTheRules) {
  for (const auto& [name, client] : clients()) {
    for (const Visibility visibility : {Visibility::hidden, Visibility::visible, Visibility::user}) {
      for (const char* owner : {"", "ann", "bob"}) {
        const Server row = server_with(visibility, owner, true);
        EXPECT_EQ(sees(*client, visibility, owner), decide(*client, Operation::call, row).visible) << name;
        EXPECT_EQ(may_use_server(*client, row.name, visibility, owner),
                  decide(*client, Operation::call, row).allowed)
            << name;
      }
    }
    for (const Endpoint& endpoint : {endpoint_for({}, {}), endpoint_for({"ann"}, {}),
                                     endpoint_for({}, {"g1"}), endpoint_for({}, {}, false)})
      EXPECT_EQ(may_use(*client, endpoint), decide(*client, Operation::call, endpoint).allowed) << name;
  }
}

//                   list, read, create, update, remove, call, operate, administer
TEST(RulesTest, UsersReadThemselvesAndManageTheirTokens) {
  User ann;
  ann.id = "ann";
  User bob;
  bob.id = "bob";
  Token of_ann;
  of_ann.user = "ann";
  Token of_bob;
  of_bob.user = "bob";
  struct Row {
    const char* client;
    const char* user_ann;
    const char* user_bob;
    const char* group;
    const char* token_of_ann;
    const char* token_of_bob;
  };
  const std::vector<Row> table = {
      {"anonymous", "00-00000", "00-00000", "00-00000", "00-00000", "00-00000"},
      {"local", "00-00000", "00-00000", "00-00000", "00-00000", "00-00000"},
      {"ann", "++------", "00-00000", "00-00000", "+++-+---", "00-00000"},
      {"ann reading", "--------", "00-00000", "00-00000", "--------", "00-00000"},
      {"ann calling", "--------", "00-00000", "00-00000", "--------", "00-00000"},
      {"admin", "+++++-++", "+++++-++", "+++++-++", "+++++-++", "+++++-++"},
      {"admin of users", "+++++-++", "+++++-++", "--------", "--------", "--------"},
      {"admin calling", "--------", "--------", "--------", "--------", "--------"},
      {"bootstrap", "+++++-++", "+++++-++", "+++++-++", "+++++-++", "+++++-++"},
  };
  const auto all = clients();
  for (const Row& row : table) {
    const Principal& client = *all.at(row.client);
    const auto of = [&](const auto& subject) {
      return outcomes([&](Operation operation) { return decide(client, operation, subject); });
    };
    EXPECT_EQ(of(ann), row.user_ann) << row.client;
    EXPECT_EQ(of(bob), row.user_bob) << row.client;
    EXPECT_EQ(of(Group()), row.group) << row.client;
    EXPECT_EQ(of(of_ann), row.token_of_ann) << row.client;
    EXPECT_EQ(of(of_bob), row.token_of_bob) << row.client;
  }
}

TEST(RulesTest, AreasAreOpenToUsersAsInTheTable) {
  const std::map<Area, std::string> of_users = {
      {Area::servers, "+++++-+-"}, {Area::endpoints, "++------"}, {Area::users, "++------"},
      {Area::groups, "--------"},  {Area::tokens, "+++-+---"},    {Area::config, "--------"},
      {Area::drift, "++----+-"},   {Area::processes, "--------"}, {Area::sessions, "++--+---"},
      {Area::events, "++------"},  {Area::secrets, "+++++---"},
  };
  const auto all = clients();
  for (const auto& [area, expected] : of_users) {
    const auto of = [&](const Principal& client) {
      return outcomes([&](Operation operation) { return decide(client, operation, area); });
    };
    EXPECT_EQ(of(*all.at("ann")), expected) << to_string(area);
    EXPECT_EQ(of(*all.at("anonymous")), "--------") << to_string(area);
    EXPECT_EQ(of(*all.at("local")), "--------") << to_string(area);
    EXPECT_EQ(of(*all.at("bootstrap")), "+++++-++") << to_string(area);
    EXPECT_EQ(of(*registry_user("root", Role::admin, {"admin:" + std::string(to_string(area)) + ":read"})),
              "++------");
    EXPECT_EQ(of(*registry_user("root", Role::admin, {"admin:" + std::string(to_string(area))})), "+++++-++");
    EXPECT_EQ(of(*registry_user("root", Role::admin, {"mcp"})), "--------");
  }
}

TEST(RulesTest, DriftIsDecidedLikeItsServer) {
  const auto all = clients();
  const auto of = [&](const char* client, const Server& server) {
    return outcomes([&](Operation operation) { return decide(*all.at(client), operation, Drift(), server); });
  };
  const Server own = server_with(Visibility::user, "ann", true);
  const Server visible = server_with(Visibility::visible, "", true);
  const Server hidden = server_with(Visibility::hidden, "", true);
  EXPECT_EQ(of("ann", own), "+++++-+-");
  EXPECT_EQ(of("ann", visible), "++------");
  EXPECT_EQ(of("ann", hidden), "00-00-00");
  EXPECT_EQ(of("admin", hidden), "+++++-++");
  EXPECT_EQ(of("admin of servers", hidden), "--------");
  EXPECT_EQ(of("anonymous", visible), "--------");
}

TEST(RulesTest, SessionsBelongToTheirClient) {
  const auto all = clients();
  const auto of = [&](const char* client, const char* owner) {
    return outcomes(
        [&](Operation operation) { return decide_session(*all.at(client), operation, *all.at(owner)); });
  };
  EXPECT_EQ(of("ann", "ann"), "++--+---");
  EXPECT_EQ(of("ann", "admin"), "00000000");
  EXPECT_EQ(of("admin", "ann"), "++++++++");
  EXPECT_EQ(of("anonymous", "anonymous"), "00000000");
  EXPECT_EQ(of("admin of users", "ann"), "--------");
}

TEST(RulesTest, AccountsThatWereRemovedDisabledOrDemotedAreRefused) {
  User user;
  user.id = "ann";
  const PrincipalPtr ann = registry_user("ann", Role::user, {});
  const PrincipalPtr ann_as_admin = registry_user("ann", Role::admin, {});
  EXPECT_TRUE(decide_account(*ann, &user));
  EXPECT_FALSE(decide_account(*ann, nullptr));
  EXPECT_FALSE(decide_account(*ann_as_admin, &user));
  user.role = Role::admin;
  EXPECT_TRUE(decide_account(*ann_as_admin, &user));
  user.enabled = false;
  EXPECT_FALSE(decide_account(*ann, &user));
  EXPECT_FALSE(decide_account(*ann_as_admin, &user));
  User other;
  other.id = "bob";
  EXPECT_FALSE(decide_account(*ann, &other));
  EXPECT_TRUE(decide_account(*bootstrap_principal(), nullptr));
  EXPECT_TRUE(decide_account(*Principal::anonymous(), nullptr));
}

TEST(ScopesTest, ScopeCoversItsPartsOnly) {
  const auto allows = [](const Scopes& scopes, std::string_view scope) {
    return allows_scope(*registry_user("root", Role::admin, scopes), scope);
  };
  EXPECT_TRUE(allows({}, "admin:users"));
  EXPECT_TRUE(allows({"admin"}, "admin:users"));
  EXPECT_TRUE(allows({"admin"}, "admin:users:read"));
  EXPECT_TRUE(allows({"admin:users"}, "admin:users:read"));
  EXPECT_FALSE(allows({"admin:users:read"}, "admin:users"));
  EXPECT_FALSE(allows({"admin:users"}, "admin:servers:read"));
  EXPECT_FALSE(allows({"admin:user"}, "admin:users:read"));
  EXPECT_FALSE(allows({"admin"}, "mcp"));
  EXPECT_FALSE(allows({"mcp"}, "admin:servers:read"));
  EXPECT_TRUE(allows({"mcp"}, "endpoint:x"));
  EXPECT_FALSE(allows({"endpoint:x"}, "mcp"));
  EXPECT_FALSE(allows({"endpoint:x"}, "endpoint:xy"));
  EXPECT_FALSE(allows({"endpoint:x"}, "server:x"));
  EXPECT_FALSE(allows({"endpoint:x"}, "endpoint:x:read"));
}

TEST(ScopesTest, OnlyKnownScopesAreValid) {
  for (const char* good : {"mcp", "admin", "admin:servers", "admin:config:read", "endpoint:a", "server:b"})
    EXPECT_EQ(scope_problem(good), std::nullopt) << good;
  for (const char* bad : {"", "*", "MCP", "admin:", "admin:all", "admin:servers:write",
                          "admin:servers:read:read", "endpoint:", "server:", "admin:mcp", "admin:read"})
    EXPECT_NE(scope_problem(bad), std::nullopt) << bad;
}

TEST(ScopesTest, NewTokenHasNoMoreScopesThanTheTokenThatCreatesIt) {
  const auto refusal = [](const PrincipalPtr& client, const std::string& user, const Scopes& scopes) {
    Token token;
    token.user = user;
    token.scopes = scopes;
    const Result<void> checked = check_new_token(*client, token);
    return checked ? "none" : checked.error().detail().failure_code + " " + checked.error().detail().pointer;
  };
  const PrincipalPtr ann = registry_user("ann", Role::user, {});
  EXPECT_EQ(refusal(ann, "ann", {}), "none");
  EXPECT_EQ(refusal(ann, "ann", {"mcp"}), "none");
  EXPECT_EQ(refusal(ann, "bob", {"mcp"}), "forbidden /user");
  const PrincipalPtr limited = registry_user("ann", Role::user, {"admin:tokens", "endpoint:team"});
  EXPECT_EQ(refusal(limited, "ann", {"endpoint:team"}), "none");
  EXPECT_EQ(refusal(limited, "ann", {"admin:tokens:read"}), "none");
  EXPECT_EQ(refusal(limited, "ann", {}), "forbidden /scopes");
  EXPECT_EQ(refusal(limited, "ann", {"mcp"}), "forbidden /scopes");
  EXPECT_EQ(refusal(limited, "ann", {"endpoint:team", "admin"}), "forbidden /scopes");
  EXPECT_EQ(refusal(registry_user("ann", Role::user, {"mcp"}), "ann", {"mcp"}), "forbidden /user");
  const PrincipalPtr admin = registry_user("root", Role::admin, {"admin:tokens"});
  EXPECT_EQ(refusal(admin, "bob", {"admin:tokens:read"}), "none");
  EXPECT_EQ(refusal(admin, "bob", {}), "forbidden /scopes");
  EXPECT_EQ(refusal(bootstrap_principal(), "bob", {}), "none");
  EXPECT_EQ(refusal(Principal::anonymous(), "ann", {}), "forbidden /user");
}

TEST(RedactionTest, OnlyAdministratorsAndTheOwnerReadLiteralValues) {
  const auto all = clients();
  const Server visible = server_with(Visibility::visible, "bob", true);
  EXPECT_EQ(redaction_for(*all.at("ann"), visible), Redaction::secrets);
  EXPECT_EQ(redaction_for(*all.at("anonymous"), visible), Redaction::secrets);
  EXPECT_EQ(redaction_for(*all.at("admin"), visible), Redaction::none);
  EXPECT_EQ(redaction_for(*all.at("ann"), server_with(Visibility::user, "ann", true)), Redaction::none);
  EXPECT_EQ(redaction_for(*all.at("ann")), Redaction::secrets);
}

TEST(DefaultsTest, UsersOwnWhatTheyCreate) {
  const ConfigurationPtr configuration =
      Configuration::defaults()
          ->with("registry.drift_default", json::View(std::string_view("\"quarantine\"")))
          .value();
  const ServerDefaults of_user = defaults_for(*registry_user("ann", Role::user, {}), *configuration);
  EXPECT_EQ(of_user.owner, "ann");
  EXPECT_EQ(of_user.visibility, Visibility::user);
  EXPECT_EQ(of_user.drift, DriftPolicy::quarantine);
  const ServerDefaults of_admin = defaults_for(*bootstrap_principal(), *configuration);
  EXPECT_EQ(of_admin.owner, "");
  EXPECT_EQ(of_admin.visibility, Visibility::visible);
}

}  // namespace
}  // namespace fairlead::registry
