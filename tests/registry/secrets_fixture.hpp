// SecretsTest: a registry with a key for secrets.
#pragma once

#include "fairlead/base/base64.hpp"
#include "registry/fixture.hpp"
#include "registry/schema.hpp"

namespace fairlead::registry::test {

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

}  // namespace fairlead::registry::test
