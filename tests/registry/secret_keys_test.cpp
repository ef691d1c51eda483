// R13.2: the keys of secrets, and their replacement, on both databases.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "registry/secrets_fixture.hpp"
#include "registry/writer_process.hpp"

namespace fairlead::registry::test {
namespace {

class SecretKeysTest : public SecretsTest {};

INSTANTIATE_TEST_SUITE_P(Databases, SecretKeysTest, testing::Values(Kind::sqlite, Kind::postgresql),
                         kind_name);

TEST_P(SecretKeysTest, OtherKeyOrNoKeyIsRefusedAtTheStart) {
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

TEST_P(SecretKeysTest, WithoutAKeyTheRegistryWorksAndSecretsAreRefused) {
  options.secret_key = SecretKeyOptions();
  std::string logged;
  options.log = Log(LogLevel::warning, LogFormat::text, [&](std::string_view line) { logged += line; });
  const RegistryHandle registry = open();
  EXPECT_NE(logged.find("no secrets can be stored"), std::string::npos) << logged;
  EXPECT_NE(logged.find("--secret-key-file"), std::string::npos) << logged;
  add_server(*registry, "files");
  const Result<SecretPtr> refused = try_set(*registry, admin, body("TOKEN", "value"));
  EXPECT_EQ(code_of(refused), kSecretKeyMissing);
  EXPECT_NE(refused.error().detail().remedy.find("--secret-key-file"), std::string::npos);
  EXPECT_TRUE(registry->state().secret_keys.empty());
}

TEST_P(SecretKeysTest, KeyIsReplacedByThatInTheFirstLine) {
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

TEST_P(SecretKeysTest, DataKeyIsReplacedAndValuesAreEncryptedAgainWithoutAChange) {
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

TEST_P(SecretKeysTest, FormerDataKeyIsInNoFileOfSqlite) {
  if (GetParam() == Kind::postgresql) GTEST_SKIP() << "PostgreSQL keeps former rows until it is vacuumed";
  const RegistryHandle registry = open();
  const SecretPtr secret = set(*registry, body("TOKEN", "value"));
  const std::string former_key = registry->state().secret_keys.begin()->second->ciphertext;
  const auto files_have = [&](const std::string& text) {
    return std::ranges::any_of(std::filesystem::directory_iterator(directory / "."), [&](const auto& entry) {
      std::ifstream file(entry.path(), std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(file), {}).contains(text);
    });
  };
  EXPECT_TRUE(files_have(former_key));
  RekeyRequest request;
  request.key = false;
  request.data_key = true;
  ASSERT_TRUE(wait(registry->rekey_secrets(admin, request)));
  EXPECT_FALSE(files_have(former_key));
  EXPECT_FALSE(files_have(secret->ciphertext));
  EXPECT_EQ(value_of(*registry, secret), "value");
}

TEST_P(SecretKeysTest, ValueThatCannotBeDecryptedStopsTheChangeOfTheDataKey) {
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

TEST_P(SecretKeysTest, OtherGatewayFollowsChangesOfValuesAndKeys) {
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

TEST_P(SecretKeysTest, ManagedFileIsCreatedAndReplacedWithTheKey) {
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

TEST_P(SecretKeysTest, KeyThatCouldNotBeInstalledSurvivesLaterFailures) {
  if (GetParam() == Kind::postgresql) GTEST_SKIP() << "several gateways have files of their own";
  use_managed_file();
  const std::string blocking = options.secret_key.file + ".previous";  // a directory is not replaced
  ASSERT_TRUE(std::filesystem::create_directories(blocking + "/full"));
  RegistryHandle registry = open();
  const SecretPtr secret = set(*registry, body("TOKEN", "value"));
  const UserPtr ann = add_user(*registry, "ann");
  const Result<RekeyOutcome> first = wait(registry->rekey_secrets(admin, RekeyRequest()));
  ASSERT_TRUE(first) << first.error().to_string();
  EXPECT_EQ(code_of(wait(registry->rekey_secrets(principal(ann), RekeyRequest()))), kForbidden);
  const Result<RekeyOutcome> second = wait(registry->rekey_secrets(admin, RekeyRequest()));
  ASSERT_FALSE(second) << "the current key is in .new only";
  EXPECT_NE(second.error().message().find("secret.key"), std::string::npos);
  EXPECT_EQ(value_of(*registry, secret), "value");
  registry = reopen(std::move(registry));
  EXPECT_EQ(value_of(*registry, secret), "value");
  std::filesystem::remove_all(blocking);
  const Result<RekeyOutcome> third = wait(registry->rekey_secrets(admin, RekeyRequest()));
  ASSERT_TRUE(third) << third.error().to_string();
  EXPECT_EQ(third->previous_key_id, first->key_id);
  registry = reopen(std::move(registry));
  EXPECT_EQ(value_of(*registry, secret), "value");
  EXPECT_EQ(SecretKeyFile(options.secret_key.file).read().value().size(), 1u);
}

// Whether the transaction of a failed change was committed may be unknown.
TEST_P(SecretKeysTest, KeyOfAFailedChangeIsKeptAndUsedByTheNextOne) {
  if (GetParam() == Kind::postgresql) GTEST_SKIP() << "several gateways have files of their own";
  use_managed_file();
  RegistryHandle registry = open();
  const SecretPtr good = set(*registry, body("GOOD", "value"));
  const SecretPtr bad = set(*registry, body("BAD", "value"));
  close(std::move(registry));
  std::string forged(to_stored_json(*bad).text());
  forged.replace(forged.find(bad->nonce), bad->nonce.size(), good->nonce);
  execute("update secrets set document = '" + forged + "' where id = '" + bad->id + "'");
  registry = open();
  RekeyRequest request;
  request.data_key = true;
  ASSERT_FALSE(wait(registry->rekey_secrets(admin, request)));
  const std::vector<SecretKey> kept = SecretKeyFile(options.secret_key.file).read().value();
  ASSERT_EQ(kept.size(), 2u);
  const Result<RekeyOutcome> outcome = wait(registry->rekey_secrets(admin, RekeyRequest()));
  ASSERT_TRUE(outcome) << outcome.error().to_string();
  EXPECT_EQ(outcome->key_id, kept.back().id());
  registry = reopen(std::move(registry));
  EXPECT_EQ(value_of(*registry, good), "value");
}

TEST_P(SecretKeysTest, KilledRekeyLosesNoValue) {
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
