#include "registry/fixture.hpp"

namespace fairlead::registry::test {
namespace {

class UserLimitsTest : public RegistryTest {
 protected:
  void set(Registry& registry, const std::string& key, const std::string& value) {
    ASSERT_TRUE(wait(registry.set_config(admin, key, raw(value))));
  }
  std::string create_server(Registry& registry, const PrincipalPtr& actor, const std::string& name) {
    return code_of(wait(registry.create_server(
        actor, raw(R"({"name":")" + name + R"(","config":{"url":"https://e.example/mcp"}})"))));
  }
};

TEST_P(UserLimitsTest, UserCannotRegisterMoreServersThanTheConfigurationAllows) {
  const RegistryHandle registry = open();
  const PrincipalPtr ann = principal_of(*add_user(*registry, "ann"), nullptr, {});
  const PrincipalPtr bob = principal_of(*add_user(*registry, "bob"), nullptr, {});
  set(*registry, "registry.max_user_servers", "2");
  EXPECT_EQ(create_server(*registry, ann, "a1"), "success");
  EXPECT_EQ(create_server(*registry, ann, "a2"), "success");
  EXPECT_EQ(create_server(*registry, ann, "a3"), kForbidden);
  EXPECT_EQ(create_server(*registry, bob, "b1"), "success");
  for (const char* name : {"x1", "x2", "x3"}) EXPECT_EQ(create_server(*registry, admin, name), "success");
  const std::string id = registry->state().servers.find_by_name("a1")->id;
  ASSERT_TRUE(wait(registry->remove_server(ann, id, std::nullopt)));
  EXPECT_EQ(create_server(*registry, ann, "a3"), "success");
  EXPECT_EQ(registry->state().servers.find_by_name("a3")->visibility, Visibility::user);
}

TEST_P(UserLimitsTest, UserCannotHaveMoreValidTokensThanTheConfigurationAllows) {
  const RegistryHandle registry = open();
  const UserPtr user = add_user(*registry, "ann");
  const PrincipalPtr ann = principal_of(*user, nullptr, {});
  set(*registry, "auth.max_user_tokens", "2");
  const auto create = [&] { return wait(registry->create_token(ann, raw(R"({"user":"ann"})"))); };
  const Result<NewToken> first = create();
  ASSERT_TRUE(first) << first.error().to_string();
  EXPECT_EQ(code_of(create()), "success");
  EXPECT_EQ(code_of(create()), kForbidden);
  ASSERT_TRUE(wait(registry->revoke_token(ann, first->token->id)));
  EXPECT_EQ(code_of(create()), "success");
  EXPECT_EQ(code_of(wait(registry->create_token(admin, raw(R"({"user":"ann"})")))), "success");
}

TEST_P(UserLimitsTest, TokenMustExpireWithinTheMaximumLifetime) {
  const RegistryHandle registry = open();
  add_user(*registry, "ann");
  const auto create = [&](const std::string& expires) {
    const Result<NewToken> token =
        wait(registry->create_token(admin, raw(R"({"user":"ann")" + expires + "}")));
    return token ? "success" : token.error().detail().pointer;
  };
  EXPECT_EQ(create(""), "success");
  set(*registry, "auth.max_token_lifetime", R"("24h")");
  EXPECT_EQ(create(""), "/expires");
  EXPECT_EQ(create(R"(,"expires":"2d")"), "/expires");
  EXPECT_EQ(create(R"(,"expires":"24h")"), "success");
}

INSTANTIATE_TEST_SUITE_P(Databases, UserLimitsTest, testing::Values(Kind::sqlite, Kind::postgresql),
                         kind_name);

}  // namespace
}  // namespace fairlead::registry::test
