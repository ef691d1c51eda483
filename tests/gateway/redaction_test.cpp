// A server may repeat the secret of its configuration; errors, logs and health reports never show it.
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

  // Calls a tool of server `a`, configured as `server`. Returns all visible text: the error, the log and the
  // health report.
  std::string visible_text(const std::string& server) {
    Result<Config> parsed = parse_config("[servers.a]\n" + server, "f");
    EXPECT_TRUE(parsed) << parsed.error().message();
    config = *parsed;
    const auto client = connect_client();
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

// An HTTP server that sends the same response to every request.
struct FixedResponseServer {
  explicit FixedResponseServer(std::string bytes)
      : server([bytes](const test::ReceivedRequest& asked, Reply& reply) {
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
    return !server.requests().empty() &&
           server.requests()[0].headers.get("Authorization") == "Bearer " + kToken;
  }
  ScriptServer server;
};

TEST_F(RedactionTest, LocationOfRedirectIsRedacted) {
  const FixedResponseServer server("HTTP/1.1 302 Found\r\nLocation: https://elsewhere/?token=" + kToken +
                                   "\r\n\r\n");
  expect_redacted(visible_text(server.toml()));
  EXPECT_TRUE(server.had_token());
}

TEST_F(RedactionTest, ReasonPhraseIsRedacted) {
  const FixedResponseServer server("HTTP/1.1 500 Token " + kToken + " denied\r\n\r\n");
  expect_redacted(visible_text(server.toml()));
}

TEST_F(RedactionTest, BodyOfErrorStatusIsRedacted) {
  const FixedResponseServer server("HTTP/1.1 500 Oh\r\nContent-Type: text/plain\r\n\r\ntoken " + kToken +
                                   " denied");
  expect_redacted(visible_text(server.toml()));
}

TEST_F(RedactionTest, JsonRpcErrorInHandshakeIsRedacted) {
  const FixedResponseServer server(
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
      R"({"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"denied: s3cr3t\u002dtoken-12345","data":{"token":")" +
      kToken + R"("}}})");
  expect_redacted(visible_text(server.toml()));
}

TEST_F(RedactionTest, ResponseToWebSocketHandshakeIsRedacted) {
  const FixedResponseServer server("HTTP/1.1 403 Token " + kToken + " denied\r\n\r\n");
  std::string toml = server.toml();
  toml.replace(toml.find("http:"), 5, "ws:");
  expect_redacted(visible_text(toml));
}

TEST_F(RedactionTest, SecretInUrlPathIsRedacted) {
  const FixedResponseServer server("HTTP/1.1 500 Oh\r\n\r\n");
  expect_redacted(visible_text("url='" + server.server.url("/${GATEWAY_TEST_TOKEN}/mcp") + "'"));
}

TEST_F(RedactionTest, JsonRpcErrorOfCallIsRedacted) {
  const ScriptServer server([](const test::ReceivedRequest& asked, Reply& reply) {
    if (asked.has("tools/call")) {
      return reply.json(200, R"({"jsonrpc":"2.0","id":)" + asked.id() +
                                 R"(,"error":{"code":-32000,"message":"denied: )" + kToken +
                                 R"(","data":{"token":"s3cr3t\u002dtoken-12345","n":12345}}})");
    }
    if (asked.has("tools/list"))
      return reply.result(asked, R"({"tools":[{"name":"t","inputSchema":{"type":"object"}}]})");
    if (!asked.has("initialize\"")) return reply.respond(asked.id().empty() ? 202 : 400, "", "");
    reply.result(
        asked,
        R"({"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}})");
  });
  const std::string text = visible_text("revision='2025-06-18'\nurl='" + server.url() +
                                        "'\nheaders={X-Key='${GATEWAY_TEST_TOKEN}'}");
  expect_redacted(text);
  EXPECT_TRUE(text.contains(R"("n":12345)")) << text;
  EXPECT_TRUE(text.contains("denied: ***")) << text;
}

TEST_F(RedactionTest, StderrAndCommandLineAreRedacted) {
  const std::string text = visible_text(
      "command='sh'\nargs=['-c', 'echo \"key $0 $KEY\" >&2; exit 3', 'x${GATEWAY_TEST_TOKEN}']\n"
      "env={KEY='${env:GATEWAY_TEST_TOKEN}'}");
  expect_redacted(text);
  EXPECT_TRUE(text.contains("key x*** ***")) << text;
}

TEST_F(RedactionTest, ArgumentsAreRedactedWhenProgramIsNotFound) {
  expect_redacted(visible_text("command='no-such-program-anywhere'\nargs=['${GATEWAY_TEST_TOKEN}']"));
}

// ---- cost ------------------------------------------------------------------------------------------------

constexpr std::size_t kLargestSecret = 64u << 10;
constexpr std::size_t kLargestError = 256u << 10;

// Returns a secret of the maximum file size. All lines have a common prefix and need the longest escapes.
std::string lines_with_common_prefix() {
  std::string file;
  for (int i = 100'000; file.size() < kLargestSecret - 20; ++i)
    file += "    \"+++" + std::to_string(i) + "\n";
  return file;
}

TEST(RedactionCostTest, RedactingLargestErrorDoesNotBlockLoop) {
  Loop loop;
  const Redactor redactor({lines_with_common_prefix()});
  std::string prefixes;
  while (prefixes.size() < kLargestError) prefixes += "    \"+++1000";
  std::string escaped;
  while (escaped.size() < kLargestError) escaped += R"(    \"+++1000)";
  for (const std::string& text : {std::string(kLargestError, ' '), escaped, prefixes,
                                  lines_with_common_prefix() + lines_with_common_prefix()}) {
    std::string data;
    json::append_string(data, text);
    const Error error = Error::rpc(-1, text, data);
    std::optional<Error> clean;
    loop.post([&] { clean = json::redact(redactor, error); });
    loop.run_until([&] { return clean.has_value(); });
    EXPECT_TRUE(clean->message().ends_with("***"));
    EXPECT_EQ(clean->detail().rpc_data != data, redactor.contains_secret(text));
  }
  test::expect_short_turns(loop);
}

TEST(RedactionCostTest, LargestSecretNeedsLittleTimeAndMemory) {
  Loop loop;
  const std::string secret = lines_with_common_prefix();
  const std::size_t before = test::allocated_bytes();
  std::unique_ptr<Redactor> redactor;
  loop.post([&] { redactor = std::make_unique<Redactor>(std::vector{secret}); });
  loop.run_until([&] { return redactor != nullptr; });
  test::expect_short_turns(loop);
  EXPECT_LT(test::allocated_bytes() - before, 16u << 20);
}

}  // namespace
}  // namespace fairlead::gateway
