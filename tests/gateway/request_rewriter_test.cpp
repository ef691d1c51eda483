// The members that are rewritten in forwarded requests and results. All other bytes are unchanged (R1.6).
#include "gateway/request_rewriter.hpp"

#include <gtest/gtest.h>

namespace fairlead::gateway {
namespace {

constexpr auto kLegacy = mcp::kNewestLegacyRevision;
constexpr auto kModern = mcp::kNewestRevision;

std::string rewritten(const std::string& text, mcp::Revision client, mcp::Revision server,
                      std::optional<std::string> name = "tool",
                      const std::string& capabilities = R"({"roots":{}})", bool add_progress_token = false) {
  const rpc::Message message = rpc::Message::parse(Bytes::copy_of(text));
  const std::string info = R"({"name":"c","version":"1"})";
  const ClientDescription described{client, json::View(capabilities), json::View(info),
                                    mcp::LoggingLevel::warning};
  const RequestRewriter request(message, mcp::CallFacts::of(message), name, described);
  return std::string(request.encode(server, {message.id(), add_progress_token}).joined().view());
}

const std::string kEnvelope =
    R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/logLevel":"warning"})";

TEST(RequestRewriterTest, OnlyNameChangesWithinOneEra) {
  EXPECT_EQ(
      rewritten(
          R"({"jsonrpc":"2.0","id":"42","method":"tools/call", "params":{"arguments":{"name":"s__tool","n":1.0e+2},"name":"s__tool","_meta":{"progressToken":7}}})",
          kLegacy, kLegacy),
      R"({"jsonrpc":"2.0","id":"42","method":"tools/call", "params":{"arguments":{"name":"s__tool","n":1.0e+2},"name":"tool","_meta":{"progressToken":"42"}}})");
  const std::string modern =
      R"({"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a:b","requestState":"x",)" +
      kEnvelope + "}}";
  EXPECT_EQ(rewritten(modern, kModern, kModern, std::nullopt), modern);
}

// Requests over 4 KiB are not copied into one buffer.
TEST(RequestRewriterTest, LargeRequestIsRewrittenLikeSmallOne) {
  for (const std::size_t size : {10UL, 5000UL}) {
    const std::string arguments = R"("arguments":{"text":")" + std::string(size, 'x') + "\"}";
    const std::string request =
        R"({"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"s__tool",)" + arguments + "}}";
    const rpc::Message message = rpc::Message::parse(Bytes::copy_of(request));
    const ClientDescription client{kLegacy, json::View(), json::View(), std::nullopt};
    const RequestRewriter rewriter(message, mcp::CallFacts::of(message), "tool", client);
    rpc::Rope rope;
    {
      const std::string id = std::to_string(123'456'789'012);
      rope = rewriter.encode(kLegacy, {id, true});
    }
    EXPECT_EQ(rope.joined().view(),
              R"({"jsonrpc":"2.0","id":123456789012,"method":"tools/call","params":{"name":"tool",)" +
                  arguments + R"(,"_meta":{"progressToken":123456789012}}})");
  }
}

TEST(RequestRewriterTest, ProgressTokenIsAddedFirstToMeta) {
  const auto with_token = [](const std::string& text, mcp::Revision server) {
    return rewritten(text, kLegacy, server, std::nullopt, "{}", true);
  };
  const std::string head = R"({"jsonrpc":"2.0","id":"i","method":"x")";
  EXPECT_EQ(with_token(head + "}", kLegacy), head + R"(,"params":{"_meta":{"progressToken":"i"}}})");
  EXPECT_EQ(with_token(head + R"(,"params":{"_meta":{"a":1}}})", kLegacy),
            head + R"(,"params":{"_meta":{"a":1,"progressToken":"i"}}})");
  EXPECT_EQ(with_token(head + R"(,"params":{"_meta":{}}})", kLegacy),
            head + R"(,"params":{"_meta":{"progressToken":"i"}}})");
  const std::string modern = with_token(head + R"(,"params":{"_meta":{"a":1}}})", kModern);
  EXPECT_TRUE(modern.starts_with(head + R"(,"params":{"_meta":{"a":1,"progressToken":"i","io.)")) << modern;
  const std::string added = with_token(head + "}", kModern);
  EXPECT_TRUE(added.starts_with(head + R"(,"params":{"_meta":{"progressToken":"i","io.)")) << added;
  // The server rejects such requests.
  for (const std::string invalid : {R"(,"params":{"_meta":[]}})", R"(,"params":[1]})"})
    EXPECT_EQ(with_token(head + invalid, kLegacy), head + invalid);
}

TEST(RequestRewriterTest, ExtensionsAndTasksAreNotForwarded) {
  EXPECT_EQ(
      rewritten(
          R"({"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"extensions":{"a/b":{}},"roots":{}}}}})",
          kModern, kModern, std::nullopt),
      R"({"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}})");
  EXPECT_EQ(rewritten(R"({"jsonrpc":"2.0","id":1,"method":"x","params":{"task":{"ttl":1},"a":1}})", kLegacy,
                      kLegacy, std::nullopt),
            R"({"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1}})");
}

TEST(RequestRewriterTest, ModernEnvelopeIsRemovedForLegacyServer) {
  EXPECT_EQ(rewritten(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__tool",)" +
                          kEnvelope + "}}",
                      kModern, kLegacy),
            R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool","_meta":{}}})");
}

TEST(RequestRewriterTest, EnvelopeIsAddedToLegacyRequestForModernServer) {
  EXPECT_EQ(rewritten(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__tool"}})",
                      kLegacy, kModern),
            R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool",)" + kEnvelope + "}}");
  EXPECT_EQ(rewritten(R"({"jsonrpc":"2.0","id":1,"method":"x"})", kLegacy, kModern, std::nullopt),
            R"({"jsonrpc":"2.0","id":1,"method":"x","params":{)" + kEnvelope + "}}");
  EXPECT_EQ(rewritten(R"({"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"progressToken":1}}})",
                      kLegacy, kModern, std::nullopt),
            R"({"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"progressToken":1,)" +
                kEnvelope.substr(9) + "}}");
}

TEST(RequestRewriterTest, ModernMembersOfLegacyRequestAreNotForwarded) {
  EXPECT_EQ(
      rewritten(
          R"({"jsonrpc":"2.0","id":1,"method":"x","params":{"requestState":"x","a":1,"inputResponses":{},"_meta":{"io.modelcontextprotocol/logLevel":"debug","b":2}}})",
          kLegacy, kModern, std::nullopt),
      R"({"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"_meta":{"b":2,)" + kEnvelope.substr(9) + "}}");
}

// Envelope, name and token are changed in one splice, whichever members of `_meta` are added or removed.
TEST(RequestRewriterTest, ProgressTokenIsAddedTogetherWithEnvelopeChanges) {
  const auto with_token = [](const std::string& params, mcp::Revision client, mcp::Revision server) {
    return rewritten(R"({"jsonrpc":"2.0","id":5,"method":"x","params":)" + params + "}", client, server,
                     std::nullopt, R"({"roots":{}})", true);
  };
  const auto sent = [](const std::string& params) {
    return R"({"jsonrpc":"2.0","id":5,"method":"x","params":)" + params + "}";
  };
  EXPECT_EQ(with_token("{" + kEnvelope + "}", kModern, kLegacy), sent(R"({"_meta":{"progressToken":5}})"));
  EXPECT_EQ(with_token(R"({"_meta":{"a":1,)" + kEnvelope.substr(9) + "}", kModern, kLegacy),
            sent(R"({"_meta":{"a":1,"progressToken":5}})"));
  EXPECT_EQ(with_token(R"({"_meta":{"progressToken":"t",)" + kEnvelope.substr(9) + "}", kModern, kLegacy),
            sent(R"({"_meta":{"progressToken":5}})"));
  EXPECT_EQ(with_token("{}", kLegacy, kModern),
            sent(R"({"_meta":{"progressToken":5,)" + kEnvelope.substr(9) + "}"));
  EXPECT_EQ(with_token(R"({"task":{}})", kLegacy, kLegacy), sent(R"({"_meta":{"progressToken":5}})"));
}

std::string result(const std::string& text, mcp::Revision server, mcp::Revision client,
                   std::string_view method = "tools/call") {
  const rpc::Message response =
      rpc::Message::parse(Bytes::copy_of(R"({"jsonrpc":"2.0","id":1,"result":)" + text + "}"));
  return std::string(
      result_for_client(response, method, server, client, R"({"name":"g","version":"1"})").text());
}

TEST(RequestRewriterTest, ResultIsUnchangedWithinOneEra) {
  const std::string odd = R"({ "content":[] ,"x":1.50e3,"resultType":"odd"})";
  EXPECT_EQ(result(odd, kLegacy, mcp::Revision::r2024_11_05), odd);
  EXPECT_EQ(result(odd, kModern, kModern), odd);
}

TEST(RequestRewriterTest, ModernMembersAreAddedToLegacyResult) {
  EXPECT_EQ(
      result(R"({"content":[]})", kLegacy, kModern),
      R"({"content":[],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"g","version":"1"}}})");
  EXPECT_EQ(
      result(R"({"contents":[],"_meta":{"a":1}})", kLegacy, kModern, "resources/read"),
      R"({"contents":[],"_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{"name":"g","version":"1"}},"resultType":"complete","ttlMs":0,"cacheScope":"private"})");
}

TEST(RequestRewriterTest, ResultThatIsNotAnObjectIsUnchanged) {
  for (const std::string text : {"null", "[1, 2]", "7"}) {
    EXPECT_EQ(result(text, kLegacy, kModern), text);
    EXPECT_EQ(result(text, kModern, kLegacy), text);
  }
}

TEST(RequestRewriterTest, ModernMembersAreRemovedFromResultForLegacyClient) {
  EXPECT_EQ(
      result(
          R"({"resultType":"complete","content":[],"structuredContent":[1],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"},"a":1}})",
          kModern, kLegacy),
      R"({"content":[],"_meta":{"a":1}})");
  EXPECT_EQ(result(R"({"contents":[],"resultType":"complete","ttlMs":5,"cacheScope":"public"})", kModern,
                   kLegacy, "resources/read"),
            R"({"contents":[]})");
}

}  // namespace
}  // namespace fairlead::gateway
