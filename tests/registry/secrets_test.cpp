// R13.2: secrets in the registry, on both databases.
#include "registry/secret_lookup.hpp"
#include "registry/secrets_fixture.hpp"

namespace fairlead::registry::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Databases, SecretsTest, testing::Values(Kind::sqlite, Kind::postgresql), kind_name);

TEST_P(SecretsTest, ValueSurvivesARestartAndIsNotInTheJsonForm) {
  RegistryHandle registry = open();
  const SecretPtr secret = set(*registry, body("TOKEN", "hunter22-secret"));
  EXPECT_EQ(to_json(*secret).text().find("hunter22"), std::string_view::npos);
  EXPECT_EQ(to_json(*secret).text().find("ciphertext"), std::string_view::npos);
  EXPECT_EQ(to_stored_json(*secret).text().find("hunter22"), std::string_view::npos);
  registry = reopen(std::move(registry));
  EXPECT_EQ(value_of(*registry, secret), "hunter22-secret");
  EXPECT_EQ(registry->secret_key_status().key_id, key_id('a'));
  EXPECT_EQ(registry->secret_key_status().secrets, 1u);
  EXPECT_FALSE(registry->secret_key_status().problem);
}

TEST_P(SecretsTest, ChangedValueHasTheNextVersionAndAnEqualValueIsNoChange) {
  const RegistryHandle registry = open();
  const SecretPtr secret = set(*registry, body("TOKEN", "one"));
  int changes = 0;
  const auto subscription = registry->on_change([&](const Change&) { ++changes; });
  const auto patch = [&](const char* text, Registry::Version version = std::nullopt) {
    return wait(registry->patch_secret(admin, secret->id, raw(text), version));
  };
  EXPECT_EQ(patch(R"({"value":"one"})").value()->version, 1);
  EXPECT_EQ(changes, 0);
  EXPECT_EQ(patch(R"({"value":"two"})").value()->version, 2);
  EXPECT_EQ(changes, 1);
  EXPECT_EQ(value_of(*registry, secret), "two");
  EXPECT_EQ(code_of(patch(R"({"value":"three"})", 1)), kVersionMismatch);
  EXPECT_EQ(code_of(patch(R"({"name":"OTHER","value":"three"})")), kInvalidRow);
  EXPECT_EQ(code_of(patch(R"({"server":"x","value":"three"})")), kInvalidRow);
  EXPECT_EQ(code_of(patch(R"({})")), kInvalidRow);
  EXPECT_TRUE(wait(registry->remove_secret(admin, secret->id, 2)));
  EXPECT_EQ(registry->state().secrets.size(), 0u);
  EXPECT_TRUE(registry->state().secrets_by_scope.empty());
}

TEST_P(SecretsTest, InvalidBodiesAreRefusedWithoutTheirValue) {
  const RegistryHandle registry = open();
  const auto refused = [&](const std::string& text) {
    const Result<SecretPtr> created = try_set(*registry, admin, raw(text));
    if (created) return std::string("created");
    EXPECT_EQ(created.error().to_string().find("hunter22"), std::string::npos);
    return created.error().detail().pointer;
  };
  EXPECT_EQ(refused(R"({"value":"hunter22"})"), "/name");
  EXPECT_EQ(refused(R"({"name":"A"})"), "/value");
  EXPECT_EQ(refused(R"({"name":"A","value":""})"), "/value");
  EXPECT_EQ(refused(R"({"name":"A","value":["hunter22"]})"), "/value");
  EXPECT_EQ(refused(R"({"name":"A","value":"hunter22\u0000"})"), "/value");
  EXPECT_EQ(refused(R"({"name":"A","value":"hunter22)" + std::string(64 << 10, 'x') + R"("})"), "/value");
  EXPECT_EQ(refused(R"({"name":"A B","value":"hunter22"})"), "/name");
  EXPECT_EQ(refused(R"({"name":"A","value":"hunter22","id":"1"})"), "/id");
  EXPECT_EQ(refused(R"({"name":"A","value":"hunter22","values":1})"), "/values");
  EXPECT_EQ(refused(R"({"name":"A","value":"hunter22","server":"none"})"), "/server");
  EXPECT_EQ(refused(R"({"name":"A","value":"hunter22","user":"none"})"), "/server");
  EXPECT_EQ(registry->state().secrets.size(), 0u);
}

TEST_P(SecretsTest, NameIsUniqueWithinItsServerAndUser) {
  const RegistryHandle registry = open();
  add_server(*registry, "files");
  add_server(*registry, "mail");
  add_user(*registry, "ann");
  add_user(*registry, "bob");
  set(*registry, body("TOKEN", "system"));
  set(*registry, body("token", "another name"));
  set(*registry, body("TOKEN", "files", "files"));
  set(*registry, body("TOKEN", "mail", "mail"));
  set(*registry, body("TOKEN", "ann", "files", "ann"));
  set(*registry, body("TOKEN", "bob", "files", "bob"));
  for (const json::Raw& again :
       {body("TOKEN", "x"), body("TOKEN", "x", "files"), body("TOKEN", "x", "files", "bob")}) {
    const Result<SecretPtr> created = try_set(*registry, admin, again);
    EXPECT_EQ(code_of(created), kNameTaken);
    EXPECT_EQ(created.error().detail().pointer, "/name");
  }
}

TEST_P(SecretsTest, OwnValueWinsOverThatOfTheServerOverThatOfTheSystem) {
  const RegistryHandle registry = open();
  const ServerPtr files = add_server(*registry, "files");
  const ServerPtr mail = add_server(*registry, "mail");
  const UserPtr ann = add_user(*registry, "ann");
  const UserPtr bob = add_user(*registry, "bob");
  const auto found = [&](const ServerPtr& server, const std::string& user) {
    const FoundSecret secret = find_secret(registry->state(), *server, user, "TOKEN");
    return secret.secret ? value_of(*registry, secret.secret) : std::string(to_string(secret.source));
  };
  EXPECT_EQ(found(files, ann->id), "missing");
  set(*registry, body("TOKEN", "of the system"));
  EXPECT_EQ(found(files, ann->id), "of the system");
  set(*registry, body("TOKEN", "of files", "files"));
  const SecretPtr own = set(*registry, body("TOKEN", "of ann", "files", "ann"));
  EXPECT_EQ(found(files, ann->id), "of ann");
  EXPECT_EQ(found(files, bob->id), "of files");
  EXPECT_EQ(found(files, ""), "of files");
  EXPECT_EQ(found(mail, ann->id), "of the system");
  EXPECT_TRUE(wait(registry->remove_secret(admin, own->id, std::nullopt)));
  EXPECT_EQ(found(files, ann->id), "of files");
}

TEST_P(SecretsTest, ServerOfAUserGetsOnlyItsOwnersValues) {
  const RegistryHandle registry = open();
  const UserPtr ann = add_user(*registry, "ann");
  const UserPtr bob = add_user(*registry, "bob");
  const Result<ServerPtr> server = wait(registry->create_server(
      principal(ann),
      raw(R"({"name":"own","config":{"url":"https://e.example/","headers":{"X":"${secret:TOKEN}"}}})")));
  ASSERT_TRUE(server) << server.error().to_string();
  set(*registry, body("TOKEN", "of the system"));
  set(*registry, body("TOKEN", "of the server", "own"));
  set(*registry, body("TOKEN", "of bob", "own", "bob"));
  const auto source = [&](const std::string& user) {
    return to_string(find_secret(registry->state(), **server, user, "TOKEN").source);
  };
  EXPECT_EQ(source(ann->id), "missing");
  EXPECT_EQ(source(bob->id), "missing");
  EXPECT_EQ(source(""), "missing");
  EXPECT_FALSE(has_user_values(registry->state(), **server));
  // The owner's value is that of every caller.
  const Result<SecretPtr> own = try_set(*registry, principal(ann), body("TOKEN", "of ann", "own"));
  ASSERT_TRUE(own) << own.error().to_string();
  EXPECT_EQ((*own)->user, ann->id);
  EXPECT_EQ(find_secret(registry->state(), **server, bob->id, "TOKEN").secret->id, (*own)->id);
}

TEST_P(SecretsTest, UsersSetOnlyTheirOwnValues) {
  const RegistryHandle registry = open();
  add_server(*registry, "files");
  const ServerPtr hidden = add_server(*registry, "hidden");
  ASSERT_TRUE(patch_server(*registry, hidden, R"({"visibility":"hidden"})"));
  const UserPtr ann = add_user(*registry, "ann");
  add_user(*registry, "bob");
  const PrincipalPtr actor = principal(ann);
  const Result<SecretPtr> own = try_set(*registry, actor, body("TOKEN", "1", "files"));
  ASSERT_TRUE(own) << own.error().to_string();
  EXPECT_EQ((*own)->user, ann->id);
  EXPECT_EQ(code_of(try_set(*registry, actor, body("OTHER", "1", "files", "bob"))), kForbidden);
  EXPECT_EQ(code_of(try_set(*registry, actor, body("OTHER", "1", "files", "nobody"))), kForbidden);
  EXPECT_EQ(code_of(try_set(*registry, actor, body("OTHER", "1", "hidden"))), kNotFound);
  EXPECT_EQ(code_of(try_set(*registry, actor, body("OTHER", "1", "nothing"))), kNotFound);
  EXPECT_EQ(code_of(try_set(*registry, actor, body("OTHER", "1"))), kInvalidRow);
  const SecretPtr system = set(*registry, body("TOKEN", "1"));
  EXPECT_EQ(code_of(wait(registry->patch_secret(actor, system->id, raw(R"({"value":"2"})"), std::nullopt))),
            kNotFound);
  EXPECT_EQ(code_of(wait(registry->remove_secret(actor, system->id, std::nullopt))), kNotFound);
  EXPECT_EQ(code_of(wait(registry->rekey_secrets(actor, RekeyRequest()))), kForbidden);
  EXPECT_TRUE(wait(registry->patch_secret(actor, (*own)->id, raw(R"({"value":"2"})"), std::nullopt)));
  EXPECT_EQ(value_of(*registry, *own), "2");
}

TEST_P(SecretsTest, UserHasAtMostMaxUserSecrets) {
  const RegistryHandle registry = open();
  add_server(*registry, "files");
  ASSERT_TRUE(wait(registry->set_config(admin, "registry.max_user_secrets", raw("2"))));
  const PrincipalPtr ann = principal(add_user(*registry, "ann"));
  EXPECT_TRUE(try_set(*registry, ann, body("A", "1", "files")));
  const Result<SecretPtr> second = try_set(*registry, ann, body("B", "1", "files"));
  ASSERT_TRUE(second);
  const Result<SecretPtr> third = try_set(*registry, ann, body("C", "1", "files"));
  EXPECT_EQ(code_of(third), kForbidden);
  EXPECT_NE(third.error().message().find("registry.max_user_secrets"), std::string::npos);
  EXPECT_TRUE(wait(registry->patch_secret(ann, (*second)->id, raw(R"({"value":"2"})"), std::nullopt)))
      << "a value can be changed at the limit";
}

TEST_P(SecretsTest, SecretsOfARemovedServerAndUserAreRemoved) {
  RegistryHandle registry = open();
  const ServerPtr files = add_server(*registry, "files");
  add_server(*registry, "mail");
  const UserPtr ann = add_user(*registry, "ann");
  set(*registry, body("TOKEN", "1"));
  set(*registry, body("TOKEN", "1", "files"));
  set(*registry, body("TOKEN", "1", "files", "ann"));
  set(*registry, body("TOKEN", "1", "mail", "ann"));
  ASSERT_TRUE(wait(registry->remove_server(admin, files->id, std::nullopt)));
  EXPECT_EQ(registry->state().secrets.size(), 2u);
  ASSERT_TRUE(wait(registry->remove_user(admin, ann->id, std::nullopt)));
  EXPECT_EQ(registry->state().secrets.size(), 1u);
  registry = reopen(std::move(registry));
  EXPECT_EQ(registry->state().secrets.size(), 1u);
}

TEST_P(SecretsTest, ValueOfAnotherRowIsRefused) {
  RegistryHandle registry = open();
  const SecretPtr mine = set(*registry, body("MINE", "mine"));
  const SecretPtr other = set(*registry, body("OTHER", "other"));
  close(std::move(registry));
  // An attacker exchanges the encrypted values, and keeps the rows well-formed.
  std::string forged(to_stored_json(*mine).text());
  const auto replace = [&forged](const std::string& from, const std::string& to) {
    forged.replace(forged.find(from), from.size(), to);
  };
  replace(mine->nonce, other->nonce);
  replace(mine->ciphertext, other->ciphertext);
  execute("update secrets set document = '" + forged + "' where id = '" + mine->id + "'");
  registry = open();
  EXPECT_NE(value_of(*registry, mine), "other");
  EXPECT_FALSE(registry->secret_value(*registry->state().secrets.find(mine->id)));
  EXPECT_EQ(value_of(*registry, other), "other");
}

}  // namespace
}  // namespace fairlead::registry::test
