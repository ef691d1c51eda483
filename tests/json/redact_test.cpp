// Tests of redact(): secrets in JSON text and in errors are replaced.
#include "json/redact.hpp"

#include <gtest/gtest.h>

namespace fairlead::json {
namespace {

Raw parsed(std::string_view text) {
  return Raw::parse(text).value();
}

TEST(RedactTest, ReplacesSecretsInStringsAndKeysInEverySpelling) {
  const Redactor redactor({"hunter2"});
  const Raw value = parsed(R"({"a hunter2":["\u0068unter2!",{"b":"no"}],"c":"x"})");
  EXPECT_EQ(redact(redactor, value).text(), R"({"a ***":["***!",{"b":"no"}],"c":"x"})");
}

TEST(RedactTest, ReplacesNumberThatContainsSecret) {
  const Redactor redactor({"48151623"});
  const Raw value = parsed(R"({"pin":48151623,"list":[-4815162342.5,4815,"48151623"],"n":1})");
  EXPECT_EQ(redact(redactor, value).text(), R"({"pin":"***","list":["***",4815,"***"],"n":1})");
  EXPECT_EQ(redact_strings(redactor, value).text(),
            R"({"pin":48151623,"list":[-4815162342.5,4815,"***"],"n":1})");
  EXPECT_EQ(redact(redactor, parsed("48151623")).text(), R"("***")");
}

TEST(RedactTest, ValueWithoutSecretKeepsItsBytes) {
  const Redactor redactor({"hunter2"});
  const Raw value = parsed(R"({ "a" : "\u0061", "b" : -1.50e3 })");
  EXPECT_EQ(redact(redactor, value).text().data(), value.text().data());
}

TEST(RedactTest, RedactsAllTextsOfError) {
  const Redactor redactor({"4815162342"});
  Error error = Error::rpc(-1, "no 4815162342", R"({"pin":4815162342})");
  error = std::move(error).with([](ErrorDetail& detail) {
    detail.command_line = "run 4815162342";
    detail.search_path = "/4815162342";
    detail.stderr_lines = {"saw 4815162342"};
  });
  const Error clean = redact(redactor, error);
  EXPECT_EQ(clean.message(), "no ***");
  EXPECT_EQ(clean.detail().rpc_data, R"({"pin":"***"})");
  EXPECT_EQ(clean.detail().command_line, "run ***");
  EXPECT_EQ(clean.detail().search_path, "/***");
  EXPECT_EQ(clean.detail().stderr_lines, std::vector<std::string>{"saw ***"});
}

}  // namespace
}  // namespace fairlead::json
