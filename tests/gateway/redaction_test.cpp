// A server that repeats the secret it was connected with: nothing that people see shows it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <optional>

#include "fairlead/json/writer.hpp"
#include "gateway/harness.hpp"
#include "http/script_server.hpp"
#include "json/redact.hpp"
#include "support/turns.hpp"

namespace fairlead::gateway {
namespace {

using test::Reply;
using test::ScriptServer;

const std::string kToken = "s3cr3t-token-12345";

class RedactionTest : public GatewayTest {
 protected:
  RedactionTest() {
    ::setenv("GATEWAY_TEST_TOKEN", kToken.c_str(), 1);
    gateway_log = Log(LogLevel::trace, LogFormat::json, [this](std::string_view line) { logged += line; });
  }

  ~RedactionTest() override { ::unsetenv("GATEWAY_TEST_TOKEN"); }

  // Everything that can be seen of server `a` after a call to one of its tools: the error, the log and the
  // health report.
  std::string seen(const std::string& server) {
    Result<Config> parsed = parse_config("[servers.a]\n" + server, "f");
    EXPECT_TRUE(parsed) << parsed.error().message();
    config = *parsed;
    const auto client = enter();
    const Result<mcp::ToolResult> result = loop.block_on(client->client->call_tool("a__t", raw("{}")));
    EXPECT_FALSE(result);
    const std::string failure =
        result ? "" : result.error().to_string() + "\n" + result.error().detail().rpc_data;
    return failure + "\n" + logged + "\n" + std::string(gateway->health().text());
  }
  void expect_redacted(const std::string& text) {
    EXPECT_FALSE(text.contains(kToken)) << text;
    EXPECT_TRUE(text.contains("***")) << text;
  }

  std::string logged;
};

// An HTTP server that answers every request with the same bytes.
struct Parrot {
  explicit Parrot(std::string bytes)
      : server([bytes](const test::Asked& asked, Reply& reply) {
          std::string answer = bytes;
          if (const std::size_t at = answer.find("ID"); at != std::string::npos)
            answer.replace(at, 2, asked.id().empty() ? "null" : asked.id());
          const std::size_t body = answer.find("\r\n\r\n");
          answer.insert(body, "\r\nContent-Length: " + std::to_string(answer.size() - body - 4));
          reply.send(answer);
        }) {}
  std::string toml() const {
    return "url='" + server.url() + "'\nheaders={Authorization='Bearer ${GATEWAY_TEST_TOKEN}'}";
  }
  bool had_token() const {
    return !server.asked().empty() && server.asked()[0].headers.get("Authorization") == "Bearer " + kToken;
  }
  ScriptServer server;
};

TEST_F(RedactionTest, TheLocationOfARedirectIsRedacted) {
  const Parrot parrot("HTTP/1.1 302 Found\r\nLocation: https://elsewhere/?token=" + kToken + "\r\n\r\n");
  expect_redacted(seen(parrot.toml()));
  EXPECT_TRUE(parrot.had_token());
}

TEST_F(RedactionTest, AReasonPhraseIsRedacted) {
  const Parrot parrot("HTTP/1.1 500 Token " + kToken + " denied\r\n\r\n");
  expect_redacted(seen(parrot.toml()));
}

TEST_F(RedactionTest, TheBodyOfAnErrorStatusIsRedacted) {
  const Parrot parrot("HTTP/1.1 500 Oh\r\nContent-Type: text/plain\r\n\r\ntoken " + kToken + " denied");
  expect_redacted(seen(parrot.toml()));
}

TEST_F(RedactionTest, AJsonRpcErrorInTheHandshakeIsRedacted) {
  const Parrot parrot(
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
      R"({"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"denied: s3cr3t\u002dtoken-12345","data":{"token":")" +
      kToken + R"("}}})");
  expect_redacted(seen(parrot.toml()));
}

TEST_F(RedactionTest, TheAnswerToAWebSocketHandshakeIsRedacted) {
  const Parrot parrot("HTTP/1.1 403 Token " + kToken + " denied\r\n\r\n");
  std::string toml = parrot.toml();
  toml.replace(toml.find("http:"), 5, "ws:");
  expect_redacted(seen(toml));
}

TEST_F(RedactionTest, ASecretInThePathOfAnAddressIsRedacted) {
  const Parrot parrot("HTTP/1.1 500 Oh\r\n\r\n");
  expect_redacted(seen("url='" + parrot.server.url("/${GATEWAY_TEST_TOKEN}/mcp") + "'"));
}

TEST_F(RedactionTest, AJsonRpcErrorOfACallIsRedacted) {
  const ScriptServer server([](const test::Asked& asked, Reply& reply) {
    if (asked.has("tools/call")) {
      return reply.json(200, R"({"jsonrpc":"2.0","id":)" + asked.id() +
                                 R"(,"error":{"code":-32000,"message":"denied: )" + kToken +
                                 R"(","data":{"token":"s3cr3t\u002dtoken-12345","n":12345}}})");
    }
    if (asked.has("tools/list"))
      return reply.result(asked, R"({"tools":[{"name":"t","inputSchema":{"type":"object"}}]})");
    if (!asked.has("initialize\"")) return reply.answer(asked.id().empty() ? 202 : 400, "", "");
    reply.result(
        asked,
        R"({"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}})");
  });
  const std::string text =
      seen("revision='2025-06-18'\nurl='" + server.url() + "'\nheaders={X-Key='${GATEWAY_TEST_TOKEN}'}");
  expect_redacted(text);
  EXPECT_TRUE(text.contains(R"("n":12345)")) << text;
  EXPECT_TRUE(text.contains("denied: ***")) << text;
}

TEST_F(RedactionTest, StderrAndCommandLineOfAProgramAreRedacted) {
  const std::string text = seen(
      "command='sh'\nargs=['-c', 'echo \"key $0 $KEY\" >&2; exit 3', 'x${GATEWAY_TEST_TOKEN}']\n"
      "env={KEY='${env:GATEWAY_TEST_TOKEN}'}");
  expect_redacted(text);
  EXPECT_TRUE(text.contains("key x*** ***")) << text;
}

TEST_F(RedactionTest, AProgramThatIsNotFoundDoesNotShowItsArguments) {
  expect_redacted(seen("command='no-such-program-anywhere'\nargs=['${GATEWAY_TEST_TOKEN}']"));
}

// ---- cost ------------------------------------------------------------------------------------------------

constexpr std::size_t kLargestSecret = 64u << 10;
constexpr std::size_t kLargestError = 256u << 10;

// As large as the file of a secret may be. All lines begin alike, and need the longest forms.
std::string lines_with_the_same_beginning() {
  std::string file;
  for (int i = 100'000; file.size() < kLargestSecret - 20; ++i)
    file += "    \"+++" + std::to_string(i) + "\n";
  return file;
}

TEST(Redaction, LargestErrorAndLargestSecretDoNotHoldTheLoop) {
  Loop loop;
  const Redactor redactor({lines_with_the_same_beginning()});
  std::string beginnings;
  while (beginnings.size() < kLargestError) beginnings += "    \"+++1000";
  std::string escaped;
  while (escaped.size() < kLargestError) escaped += R"(    \"+++1000)";
  for (const std::string& text : {std::string(kLargestError, ' '), escaped, beginnings,
                                  lines_with_the_same_beginning() + lines_with_the_same_beginning()}) {
    std::string data;
    json::append_string(data, text);
    const Error error = Error::rpc(-1, text, data);
    std::optional<Error> clean;
    loop.post([&] { clean = json::redact(redactor, error); });
    loop.run_until([&] { return clean.has_value(); });
    EXPECT_TRUE(clean->message().ends_with("***"));
    EXPECT_EQ(clean->detail().rpc_data != data, redactor.finds_secret(text));
  }
  test::expect_short_turns(loop);
}

TEST(Redaction, LargestSecretNeedsLittleTimeAndMemory) {
  Loop loop;
  const std::string secret = lines_with_the_same_beginning();
  const std::size_t before = test::allocated_bytes();
  std::unique_ptr<Redactor> redactor;
  loop.post([&] { redactor = std::make_unique<Redactor>(std::vector{secret}); });
  loop.run_until([&] { return redactor != nullptr; });
  test::expect_short_turns(loop);
  EXPECT_LT(test::allocated_bytes() - before, 16u << 20);
}

}  // namespace
}  // namespace fairlead::gateway
