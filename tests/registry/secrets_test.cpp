// R13.2: secrets in the registry, on both databases.
#include <fstream>
#include <random>
#include <sstream>

#include "fairlead/base/base64.hpp"
#include "registry/fixture.hpp"
#include "registry/schema.hpp"
#include "registry/secret_lookup.hpp"
#include "registry/writer_process.hpp"

namespace fairlead::registry::test {
namespace {

class SecretsTest : public RegistryTest {
 protected:
  SecretsTest() { use_key({key_text('a')}); }

  static std::string key_text(char c) { return base64_encode(std::string(SecretKey::kBytes, c)); }
  static std::string key_id(char c) {
    return SecretKey::from_bytes(std::string(SecretKey::kBytes, c)).value().id();
  }
  void use_key(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    options.secret_key = SecretKeyOptions();
    options.secret_key.text = std::make_shared<const SecretText>(text);
    options.secret_key.source = "the test's key";
  }
  void use_managed_file() {
    options.secret_key = SecretKeyOptions();
    options.secret_key.file = directory / "secret.key";
    options.secret_key.manage_file = true;
  }

  static json::Raw body(const std::string& name, const std::string& value, const std::string& server = "",
                        const std::string& user = "") {
    std::string text = R"({"name":")" + name + R"(","value":")" + value + R"(")";
    if (!server.empty()) text += R"(,"server":")" + server + R"(")";
    if (!user.empty()) text += R"(,"user":")" + user + R"(")";
    return raw(text + "}");
  }
  Result<SecretPtr> try_set(Registry& registry, const PrincipalPtr& actor, json::Raw row) {
    return wait(registry.create_secret(actor, std::move(row)));
  }
  SecretPtr set(Registry& registry, json::Raw row) {
    Result<SecretPtr> secret = try_set(registry, admin, std::move(row));
    if (!secret) throw std::runtime_error(secret.error().to_string());
    return *secret;
  }
  std::string value_of(Registry& registry, const SecretPtr& secret) {
    const SecretPtr row = registry.state().secrets.find(secret->id);
    if (!row) return "no row";
    const Result<SecretText> value = registry.secret_value(*row);
    return value ? value->view() : value.error().to_string();
  }
  static PrincipalPtr principal(const UserPtr& user) { return principal_of(*user, nullptr, {}); }
  // Executes SQL beside the registry, as an attacker who can write to the database.
  void execute(const std::string& statement) {
    const auto opened = wait(sql::Database::open(loop, address(), migrations(), options.database));
    ASSERT_TRUE(opened) << opened.error().to_string();
    const Result<void> done = wait((*opened)->run([statement](sql::Transaction& transaction) -> Result<void> {
      const auto rows = transaction.execute(statement);
      return rows ? Result<void>() : rows.error();
    }));
    EXPECT_TRUE(done) << done.error().to_string();
    wait((*opened)->close());
  }
};

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

TEST_P(SecretsTest, OtherKeyOrNoKeyIsRefusedAtTheStart) {
  RegistryHandle registry = open();
  const SecretPtr secret = set(*registry, body("TOKEN", "value"));
  close(std::move(registry));
  use_key({key_text('b')});
  const Result<RegistryHandle> other = try_open();
  EXPECT_EQ(code_of(other), kSecretKeyMismatch);
  EXPECT_NE(other.error().message().find(key_id('a')), std::string::npos);
  EXPECT_NE(other.error().message().find(key_id('b')), std::string::npos);
  EXPECT_NE(other.error().message().find("the test's key"), std::string::npos);
  options.secret_key = SecretKeyOptions();
  EXPECT_EQ(code_of(try_open()), kSecretKeyMissing);
  use_managed_file();
  EXPECT_EQ(code_of(try_open()), kSecretKeyMissing);
  EXPECT_FALSE(std::ifstream(options.secret_key.file)) << "no new key for a database that has one";
  options.secret_key.required = false;
  registry = open();
  EXPECT_TRUE(registry->secret_key_status().problem);
  EXPECT_EQ(code_of(registry->secret_value(*registry->state().secrets.find(secret->id))), kSecretKeyMissing);
  EXPECT_EQ(code_of(try_set(*registry, admin, body("B", "1"))), kSecretKeyMissing);
  close(std::move(registry));
  use_key({key_text('b'), key_text('a')});
  registry = open();
  EXPECT_EQ(value_of(*registry, secret), "value");
}

TEST_P(SecretsTest, WithoutAKeyTheRegistryWorksAndSecretsAreRefused) {
  options.secret_key = SecretKeyOptions();
  const RegistryHandle registry = open();
  add_server(*registry, "files");
  const Result<SecretPtr> refused = try_set(*registry, admin, body("TOKEN", "value"));
  EXPECT_EQ(code_of(refused), kSecretKeyMissing);
  EXPECT_NE(refused.error().detail().remedy.find("--secret-key-file"), std::string::npos);
  EXPECT_TRUE(registry->state().secret_keys.empty());
}

TEST_P(SecretsTest, KeyIsReplacedByThatInTheFirstLine) {
  RegistryHandle registry = open();
  const SecretPtr secret = set(*registry, body("TOKEN", "value"));
  EXPECT_EQ(code_of(wait(registry->rekey_secrets(admin, RekeyRequest()))), kNoNewSecretKey);
  close(std::move(registry));
  use_key({key_text('b'), key_text('a')});
  registry = open();
  EXPECT_EQ(registry->secret_key_status().key_id, key_id('a')) << "not before the request";
  const Result<RekeyOutcome> outcome = wait(registry->rekey_secrets(admin, RekeyRequest()));
  ASSERT_TRUE(outcome) << outcome.error().to_string();
  EXPECT_EQ(outcome->previous_key_id, key_id('a'));
  EXPECT_EQ(outcome->key_id, key_id('b'));
  EXPECT_EQ(outcome->data_keys, 1u);
  EXPECT_EQ(outcome->values, 0u);
  close(std::move(registry));
  use_key({key_text('b')});
  registry = open();
  EXPECT_EQ(value_of(*registry, secret), "value");
  close(std::move(registry));
  use_key({key_text('a')});
  EXPECT_EQ(code_of(try_open()), kSecretKeyMismatch);
}

TEST_P(SecretsTest, DataKeyIsReplacedAndValuesAreEncryptedAgainWithoutAChange) {
  RegistryHandle registry = open();
  std::vector<SecretPtr> secrets;
  for (int i = 0; i < 120; ++i)
    secrets.push_back(set(*registry, body("S" + std::to_string(i), "value " + std::to_string(i))));
  const std::string former = registry->state().secret_keys.begin()->first;
  int changes = 0;
  const auto subscription = registry->on_change([&](const Change&) { ++changes; });
  RekeyRequest request;
  request.key = false;
  request.data_key = true;
  const Result<RekeyOutcome> outcome = wait(registry->rekey_secrets(admin, request));
  ASSERT_TRUE(outcome) << outcome.error().to_string();
  EXPECT_EQ(outcome->values, 120u);
  EXPECT_EQ(changes, 0) << "the values are the same";
  EXPECT_EQ(registry->state().secret_keys.size(), 1u);
  EXPECT_FALSE(registry->state().secret_keys.contains(former));
  registry = reopen(std::move(registry));
  for (int i = 0; i < 120; ++i) {
    EXPECT_EQ(value_of(*registry, secrets[static_cast<std::size_t>(i)]), "value " + std::to_string(i));
    EXPECT_EQ(registry->state().secrets.find(secrets[static_cast<std::size_t>(i)]->id)->version, 1);
  }
}

TEST_P(SecretsTest, ValueThatCannotBeDecryptedStopsTheChangeOfTheDataKey) {
  RegistryHandle registry = open();
  const SecretPtr good = set(*registry, body("GOOD", "value"));
  const SecretPtr bad = set(*registry, body("BAD", "value"));
  close(std::move(registry));
  std::string forged(to_stored_json(*bad).text());
  forged.replace(forged.find(bad->nonce), bad->nonce.size(), good->nonce);
  execute("update secrets set document = '" + forged + "' where id = '" + bad->id + "'");
  registry = open();
  RekeyRequest request;
  request.key = false;
  request.data_key = true;
  const Result<RekeyOutcome> outcome = wait(registry->rekey_secrets(admin, request));
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message().find("`BAD`"), std::string::npos);
  EXPECT_EQ(value_of(*registry, good), "value");
}

TEST_P(SecretsTest, OtherGatewayFollowsChangesOfValuesAndKeys) {
  if (GetParam() == Kind::sqlite) GTEST_SKIP() << "one gateway per file";
  options.poll_interval = 50ms;
  const RegistryHandle one = open();
  const RegistryHandle two = open();
  EXPECT_EQ(one->state().secret_keys.size(), 1u) << "the second one uses the data key of the first";
  const SecretPtr secret = set(*one, body("TOKEN", "one"));
  EXPECT_TRUE(eventually([&] { return value_of(*two, secret) == "one"; }));
  ASSERT_TRUE(wait(two->patch_secret(admin, secret->id, raw(R"({"value":"two"})"), std::nullopt)));
  EXPECT_TRUE(eventually([&] { return value_of(*one, secret) == "two"; }));
  RekeyRequest request;
  request.key = false;
  request.data_key = true;
  const std::string former = one->state().secret_keys.begin()->first;
  ASSERT_TRUE(wait(one->rekey_secrets(admin, request)));
  EXPECT_TRUE(eventually([&] { return !two->state().secret_keys.contains(former); }));
  EXPECT_EQ(value_of(*two, secret), "two");
  // A gateway that does not have the new key reads on until it is restarted.
  use_key({key_text('b'), key_text('a')});
  const RegistryHandle three = open();
  ASSERT_TRUE(wait(three->rekey_secrets(admin, RekeyRequest())));
  EXPECT_TRUE(eventually([&] { return two->secret_key_status().key_id == key_id('b'); }));
  EXPECT_EQ(value_of(*two, secret), "two");
  EXPECT_FALSE(two->secret_key_status().problem);
}

TEST_P(SecretsTest, ManagedFileIsCreatedAndReplacedWithTheKey) {
  if (GetParam() == Kind::postgresql) GTEST_SKIP() << "several gateways have files of their own";
  use_managed_file();
  RegistryHandle registry = open();
  const SecretPtr secret = set(*registry, body("TOKEN", "value"));
  const std::string before = registry->secret_key_status().key_id;
  EXPECT_EQ(SecretKeyFile(options.secret_key.file).read().value().front().id(), before);
  const Result<RekeyOutcome> outcome = wait(registry->rekey_secrets(admin, RekeyRequest()));
  ASSERT_TRUE(outcome) << outcome.error().to_string();
  EXPECT_NE(outcome->key_id, before);
  const std::vector<SecretKey> keys = SecretKeyFile(options.secret_key.file).read().value();
  ASSERT_EQ(keys.size(), 1u) << "no file .new is left";
  EXPECT_EQ(keys.front().id(), outcome->key_id);
  EXPECT_EQ(SecretKeyFile(options.secret_key.file + ".previous").read().value().front().id(), before);
  registry = reopen(std::move(registry));
  EXPECT_EQ(value_of(*registry, secret), "value");
  EXPECT_EQ(registry->secret_key_status().key_id, outcome->key_id);
}

TEST_P(SecretsTest, KilledRekeyLosesNoValue) {
  const int kills = std::getenv("FAIRLEAD_TEST_LONG") ? 300 : 15;
  if (GetParam() == Kind::sqlite) use_managed_file();
  const std::string seed = GetParam() == Kind::sqlite ? options.secret_key.file : "key:" + key_text('a');
  std::mt19937 random(1);
  for (int number = 0; number < kills && !HasFailure(); ++number) {
    use_new_database();
    for (const char* end : {"", ".new", ".previous"}) ::unlink((options.secret_key.file + end).c_str());
    WriterProcess writer(address(), seed);
    const std::string text =
        writer.kill_after(static_cast<int>(random() % 8), std::chrono::microseconds(random() % 6'000));
    ASSERT_TRUE(writer.was_killed());
    const RegistryHandle registry = open();
    std::istringstream lines(text.substr(0, text.rfind('\n') + 1));
    std::string state, change, name;
    while (lines >> state >> change >> name) {
      if (state != "done" || change != "secret") continue;
      const SecretPtr secret = registry->state().secrets.find_by_name(name);
      ASSERT_TRUE(secret) << name;
      EXPECT_EQ(value_of(*registry, secret), "value of " + name);
    }
    EXPECT_FALSE(registry->secret_key_status().problem);
    if (GetParam() == Kind::sqlite) {
      EXPECT_TRUE(wait(registry->rekey_secrets(admin, RekeyRequest()))) << "the next change works";
    }
    close(registry);
  }
}

}  // namespace
}  // namespace fairlead::registry::test
