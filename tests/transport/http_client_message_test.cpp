// HttpClientMessage determines the facts that the transport needs, and does not parse an encoded call again.
#include "transport/http_client_message.hpp"

#include <gtest/gtest.h>

#include "transport/streamable_state.hpp"

namespace fairlead::transport {
namespace {

rpc::Message parsed(std::string_view text) {
  return rpc::Message::parse(Bytes::copy_of(text));
}

// Returns an encoded call whose text is not JSON, so that parsing it would fail.
rpc::Rope encoded(const rpc::Message& request, mcp::Revision revision, std::string target) {
  std::vector<Bytes> parts;
  parts.push_back(Bytes::constant("not "));
  parts.push_back(Bytes::constant("read"));
  rpc::Rope rope(std::move(parts), true);
  rope.annotate(std::make_shared<const mcp::EncodedCall>(mcp::CallFacts::of(request), "7", std::move(target),
                                                         revision));
  return rope;
}

TEST(HttpClientMessageTest, EncodedCallIsSentWithoutParsing) {
  const rpc::Message request = parsed(
      R"({"jsonrpc":"2.0","id":"theirs","method":"tools/call","params":{"name":"s__t","arguments":{"a":1}}})");
  const Result<HttpClientMessage> sent =
      HttpClientMessage::from_rope(encoded(request, mcp::kNewestRevision, "t"), Limits());
  ASSERT_TRUE(sent) << sent.error().message();
  EXPECT_TRUE(sent->is_request());
  EXPECT_EQ(sent->id(), "7");
  EXPECT_EQ(sent->method(), "tools/call");
  EXPECT_EQ(sent->modern_revision(), "2026-07-28");
  EXPECT_EQ(sent->name_header_value(), "t");
  EXPECT_EQ(sent->arguments().text(), R"({"a":1})");
  EXPECT_EQ(sent->body().size(), 2u);
  EXPECT_EQ(sent->size(), 8u);
  const http::Headers headers = StreamableState().headers_for(*sent);
  EXPECT_EQ(headers.get("Mcp-Name"), "t");
  EXPECT_EQ(headers.get("Mcp-Method"), "tools/call");
  EXPECT_EQ(headers.get("MCP-Protocol-Version"), "2026-07-28");
}

TEST(HttpClientMessageTest, EncodedCallForLegacyServerHasNoModernRevision) {
  const rpc::Message request = parsed(
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}})");
  const Result<HttpClientMessage> sent =
      HttpClientMessage::from_rope(encoded(request, mcp::kNewestLegacyRevision, "t"), Limits());
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->modern_revision(), std::nullopt);
  EXPECT_FALSE(StreamableState().headers_for(*sent).has("Mcp-Name"));
}

TEST(HttpClientMessageTest, RopeIsParsedAndRejectedWhenMalformed) {
  const Result<HttpClientMessage> sent = HttpClientMessage::from_rope(
      rpc::Rope(Bytes::constant(R"({"jsonrpc":"2.0","method":"notifications/x"})")), Limits());
  ASSERT_TRUE(sent);
  EXPECT_TRUE(sent->is_notification());
  const Result<HttpClientMessage> refused =
      HttpClientMessage::from_rope(rpc::Rope(Bytes::constant("not read")), Limits());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::serialize);
}

TEST(HttpClientMessageTest, LargeRopeHasSameFactsAsSmallOne) {
  for (const std::size_t bytes : {10u, 1u << 20}) {
    const std::string text =
        R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{"a":")" +
        std::string(bytes, 'x') +
        R"("},"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}})";
    const Result<HttpClientMessage> sent =
        HttpClientMessage::from_rope(rpc::Rope(Bytes::copy_of(text)), Limits());
    ASSERT_TRUE(sent) << sent.error().message();
    EXPECT_TRUE(sent->is_request());
    EXPECT_EQ(sent->id(), "7");
    EXPECT_EQ(sent->name_header_value(), "t");
    EXPECT_EQ(sent->modern_revision(), "2026-07-28");
    EXPECT_EQ(sent->arguments().text().size(), bytes + 8);
    EXPECT_EQ(sent->size(), text.size());
  }
  const Result<HttpClientMessage> refused = HttpClientMessage::from_rope(
      rpc::Rope(Bytes::copy_of("\"" + std::string(1u << 20, 'x') + "\"")), Limits());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::serialize);
}

}  // namespace
}  // namespace fairlead::transport
