// The rules of secrets.
#include "registry/rules_fixture.hpp"

namespace fairlead::registry {
namespace {

//                   list, read, create, update, remove, call, operate, administer
TEST(RulesTest, SecretsAreManagedByTheirUserAndByAdministrators) {
  Secret system;
  Secret of_server;
  of_server.server = "files";
  Secret of_ann = of_server;
  of_ann.user = "ann";
  Secret of_bob = of_server;
  of_bob.user = "bob";
  struct Row {
    const char* client;
    const char* system;
    const char* server;
    const char* user_ann;
    const char* user_bob;
  };
  const std::vector<Row> table = {
      {"anonymous", "00-00000", "00-00000", "00-00000", "00-00000"},
      {"local", "00-00000", "00-00000", "00-00000", "00-00000"},
      {"ann", "00-00000", "00-00000", "+++++---", "00-00000"},
      {"ann reading", "00-00000", "00-00000", "--------", "00-00000"},
      {"ann calling", "00-00000", "00-00000", "--------", "00-00000"},
      {"admin", "+++++-++", "+++++-++", "+++++-++", "+++++-++"},
      {"admin of servers", "--------", "--------", "--------", "--------"},
      {"bootstrap", "+++++-++", "+++++-++", "+++++-++", "+++++-++"},
  };
  const auto all = clients();
  for (const Row& row : table) {
    const auto of = [&](const Secret& secret) {
      return outcomes([&](Operation operation) { return decide(*all.at(row.client), operation, secret); });
    };
    EXPECT_EQ(of(system), row.system) << row.client;
    EXPECT_EQ(of(of_server), row.server) << row.client;
    EXPECT_EQ(of(of_ann), row.user_ann) << row.client;
    EXPECT_EQ(of(of_bob), row.user_bob) << row.client;
  }
}

TEST(RulesTest, UsersSetValuesAtServersThatTheySee) {
  const auto refusal = [](const char* client, const char* user, const Server* server) {
    Secret secret;
    secret.user = user;
    secret.server = "files";
    const Result<void> checked = check_new_secret(*clients().at(client), secret, server);
    return checked ? "none" : checked.error().detail().failure_code + " " + checked.error().detail().pointer;
  };
  const Server visible = server_with(Visibility::visible, "", false);
  const Server hidden = server_with(Visibility::hidden, "", false);
  const Server of_bob = server_with(Visibility::user, "bob", true);
  EXPECT_EQ(refusal("ann", "ann", &visible), "none");
  EXPECT_EQ(refusal("ann", "ann", &hidden), "not_found /server");
  EXPECT_EQ(refusal("ann", "ann", &of_bob), "not_found /server");
  EXPECT_EQ(refusal("ann", "ann", nullptr), "not_found /server");
  EXPECT_EQ(refusal("ann", "bob", &visible), "forbidden /user");
  EXPECT_EQ(refusal("ann", "", &visible), "forbidden /user");
  EXPECT_EQ(refusal("admin", "bob", &hidden), "none");
  EXPECT_EQ(refusal("anonymous", "ann", &visible), "forbidden /user");
}

}  // namespace
}  // namespace fairlead::registry
