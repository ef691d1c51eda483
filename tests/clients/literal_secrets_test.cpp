#include "clients/literal_secrets.hpp"

#include <gtest/gtest.h>

#include "fairlead/json/writer.hpp"

namespace fairlead::clients {
namespace {

// Returns "NAME = VALUE, REPLACEMENT" for each secret of a row with this `config`.
std::vector<std::string> secrets_in(const std::string& config) {
  SecretNames names;
  std::vector<std::string> found;
  const Result<json::Raw> row = json::Raw::parse(R"({"name":"d","config":)" + config + "}");
  if (!row) return {"not JSON: " + config};
  for (const LiteralSecret& secret : find_literal_secrets(*row, "d", names))
    found.push_back(secret.name + " = " + secret.value + ", " + secret.replacement);
  return found;
}

std::vector<std::string> secrets_in_args(const std::vector<std::string>& args) {
  json::Writer out;
  out.begin_object().key("command").string("c").key("args").begin_array();
  for (const std::string& arg : args) out.string(arg);
  out.end_array().end_object();
  return secrets_in(std::string(std::move(out).finish().text()));
}

using Found = std::vector<std::string>;

TEST(LiteralSecretsTest, HeadersInArgumentsAreSplitAtTheirColon) {
  EXPECT_EQ(secrets_in_args({"--header", "Authorization: Basic dXNlcjpwYXNzd29yZDEyMw=="}),
            Found{"D_TOKEN = dXNlcjpwYXNzd29yZDEyMw==, Authorization: Basic ${secret:D_TOKEN}"});
  EXPECT_EQ(secrets_in_args({"--header", "Authorization: Bearer sk-short"}),
            Found{"D_TOKEN = sk-short, Authorization: Bearer ${secret:D_TOKEN}"});
  EXPECT_EQ(secrets_in_args({"-H", "X-Api-Key:abc=def=="}),
            Found{"D_X_API_KEY = abc=def==, X-Api-Key:${secret:D_X_API_KEY}"});
  EXPECT_EQ(secrets_in_args({"--header=Authorization: Bearer sk-short"}),
            Found{"D_TOKEN = sk-short, --header=Authorization: Bearer ${secret:D_TOKEN}"});
  EXPECT_EQ(secrets_in_args({"-H", "Authorization", "Bearer sk-short"}),
            Found{"D_TOKEN = sk-short, Bearer ${secret:D_TOKEN}"});
  EXPECT_EQ(secrets_in_args({"--header", "X-Team: blue", "node:18", "https://a.example/x"}), Found{});
}

TEST(LiteralSecretsTest, NamesOfSecretsHaveNoPartOfAValue) {
  for (const char* argument :
       {"dXNlcjpwYXNzd29yZDEyMw==", "Basic dXNlcjpwYXNzd29yZDEyMw==", "to ken/x=secret"}) {
    for (const std::string& secret : secrets_in_args({argument}))
      EXPECT_TRUE(secret.starts_with("D_TOKEN = ")) << argument << ": " << secret;
  }
}

TEST(LiteralSecretsTest, OptionsWithOneDashHaveSecretsToo) {
  EXPECT_EQ(secrets_in_args({"-k", "a81mfr93kd02kf7q"}),
            Found{"D_TOKEN = a81mfr93kd02kf7q, ${secret:D_TOKEN}"});
  EXPECT_EQ(secrets_in_args({"-api-key", "pa55"}), Found{"D_API_KEY = pa55, ${secret:D_API_KEY}"});
  EXPECT_EQ(secrets_in_args({"-p", "8080", "-k", "--verbose", "-t", "a-long-name-of-a-topic"}), Found{});
}

TEST(LiteralSecretsTest, DefaultsOfReferencesAreFound) {
  EXPECT_EQ(secrets_in(R"({"command":"c","env":{"GH":"${env:GH_TOKEN:-ghp_0123456789abcdefghij}"}})"),
            Found{"GH = ghp_0123456789abcdefghij, ${secret:GH}"});
  EXPECT_EQ(secrets_in(R"({"url":"https://a/","headers":{"Authorization":"Bearer ${env:T:-sk-x1}"}})"),
            Found{"D_T = sk-x1, Bearer ${secret:D_T}"});
  EXPECT_EQ(secrets_in_args({"--token=${env:T:-pa55}"}), Found{"D_T = pa55, --token=${secret:D_T}"});
  EXPECT_EQ(secrets_in(R"({"command":"c","env":{"REGION":"${env:AREA:-eu}","TOKEN":"${env:TOKEN}"}})"),
            Found{});
}

TEST(LiteralSecretsTest, TextThatOnlyLooksLikeAReferenceIsLeftAlone) {
  EXPECT_EQ(secrets_in(R"({"command":"c","env":{"GH":"$${env:T:-ghp_0123456789abcdefghij}"}})"), Found{});
  EXPECT_EQ(secrets_in(R"({"command":"c","env":{"GH":"$$${env:T:-ghp_0123456789abcdefghij}"}})"),
            Found{"D_T = ghp_0123456789abcdefghij, $$${secret:D_T}"});
}

TEST(LiteralSecretsTest, SecretsBesideReferencesAreFound) {
  EXPECT_EQ(secrets_in(R"({"url":"https://a.example/${env:TENANT}?token=pa55"})"),
            Found{"D_TOKEN = pa55, https://a.example/${env:TENANT}?token=${secret:D_TOKEN}"});
}

}  // namespace
}  // namespace fairlead::clients
