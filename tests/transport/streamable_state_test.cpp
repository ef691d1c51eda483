// R7.3, R8.4: StreamableState determines the headers of a message from the messages sent and received before
// it.
#include "transport/streamable_state.hpp"

#include <gtest/gtest.h>

namespace fairlead::transport {
namespace {

const std::string kMeta =
    R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}})";

rpc::Message message(std::string_view text) {
  return rpc::Message::parse(Bytes::copy_of(text));
}
rpc::Message modern(const std::string& method, const std::string& members = "") {
  return message(R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":{)" + members +
                 (members.empty() ? "" : ",") + kMeta + "}}");
}
rpc::Message initialize() {
  return message(
      R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}})");
}

TEST(StreamableStateTest, ModernRequestHasVersionMethodAndNameHeaders) {
  StreamableState state;
  const rpc::Message call = modern("tools/call", R"("name":"hello w\u00f6rld")");
  EXPECT_TRUE(state.on_send(call));
  const http::Headers headers = state.headers_for(call);
  EXPECT_EQ(headers.get("Content-Type"), "application/json");
  EXPECT_EQ(headers.get("Accept"), "application/json, text/event-stream");
  EXPECT_EQ(headers.get("MCP-Protocol-Version"), "2026-07-28");
  EXPECT_EQ(headers.get("Mcp-Method"), "tools/call");
  EXPECT_EQ(headers.get("Mcp-Name"), "=?base64?aGVsbG8gd8O2cmxk?=");
  EXPECT_EQ(state.headers_for(modern("resources/read", R"("uri":"file:///path/to/file%20name.txt")"))
                .get("Mcp-Name"),
            "file:///path/to/file%20name.txt");
  EXPECT_EQ(state.headers_for(modern("prompts/get", R"("name":"p")")).get("Mcp-Name"), "p");
  EXPECT_FALSE(state.headers_for(modern("tools/list")).has("Mcp-Name"));
}

TEST(StreamableStateTest, ModernNotificationHasVersionHeader) {
  StreamableState state;
  state.on_send(modern("tools/list"));
  const http::Headers headers = state.headers_for(message(R"({"jsonrpc":"2.0","method":"notifications/x"})"));
  EXPECT_EQ(headers.get("MCP-Protocol-Version"), "2026-07-28");
  EXPECT_EQ(headers.get("Mcp-Method"), "notifications/x");
}

// R8.4: Mcp-Param-* headers are sent only for tools that were listed.
TEST(StreamableStateTest, AnnotatedArgumentsAreRepeatedInHeaders) {
  StreamableState state;
  const rpc::Message list = modern("tools/list");
  const rpc::Message call = modern(
      "tools/call",
      R"("name":"t","arguments":{"region":"eu west","empty":"","count":42,"on":false,"deep":{"x":"\u00e4"},"none":null,"query":"q"})");
  EXPECT_FALSE(state.headers_for(call).has("Mcp-Param-Region"));
  state.on_response(
      list,
      message(
          R"({"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{
    "region":{"type":"string","x-mcp-header":"Region"},"empty":{"type":"string","x-mcp-header":"Empty"},
    "count":{"type":"integer","x-mcp-header":"Count"},"on":{"type":"boolean","x-mcp-header":"On"},
    "deep":{"type":"object","properties":{"x":{"type":"string","x-mcp-header":"Deep"}}},
    "none":{"type":"string","x-mcp-header":"None"},"query":{"type":"string"}}}}]}})"));
  const http::Headers headers = state.headers_for(call);
  EXPECT_EQ(headers.get("Mcp-Param-Region"), "eu west");
  EXPECT_TRUE(headers.has("Mcp-Param-Empty"));
  EXPECT_EQ(headers.get("Mcp-Param-Count"), "42");
  EXPECT_EQ(headers.get("Mcp-Param-On"), "false");
  EXPECT_EQ(headers.get("Mcp-Param-Deep"), "=?base64?w6Q=?=");
  EXPECT_FALSE(headers.has("Mcp-Param-None"));
  EXPECT_FALSE(headers.has("Mcp-Param-Query"));
  // A new list without the annotation removes it.
  state.on_response(
      list,
      message(
          R"({"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}})"));
  EXPECT_FALSE(state.headers_for(call).has("Mcp-Param-Region"));
}

// Returns a list of `before` tools whose text has an escape, which could be an annotation, followed by an
// annotated tool.
rpc::Message list_with_annotation_after(std::size_t before) {
  std::string tools;
  for (std::size_t i = 0; i < before; ++i)
    tools += R"({"n\u0061me":")" + std::to_string(i) + R"(","inputSchema":{"type":"object"}},)";
  tools +=
      R"({"name":"t","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-he\u0061der":"Region"}}}})";
  return message(R"({"jsonrpc":"2.0","id":1,"result":{"tools":[)" + tools + "]}}");
}

TEST(StreamableStateTest, AnnotationsAreStoredForAtMostMaxTools) {
  StreamableState state;
  const rpc::Message list = modern("tools/list");
  const rpc::Message call = modern("tools/call", R"("name":"t","arguments":{"region":"eu"})");
  state.on_response(list, list_with_annotation_after(StreamableState::kMaxAnnotatedTools - 1));
  EXPECT_EQ(state.headers_for(call).get("Mcp-Param-Region"), "eu");
  state.on_response(list, list_with_annotation_after(StreamableState::kMaxAnnotatedTools));
  EXPECT_FALSE(state.headers_for(call).has("Mcp-Param-Region"));
}

TEST(StreamableStateTest, SessionHeadersAreSentAfterLegacyHandshake) {
  StreamableState state;
  EXPECT_FALSE(state.on_send(initialize()));
  EXPECT_FALSE(state.headers_for(initialize()).has("MCP-Protocol-Version"));
  EXPECT_TRUE(state.set_session_id("abc"));
  state.on_response(initialize(),
                    message(R"({"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}})"));
  const http::Headers headers =
      state.headers_for(message(R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}})"));
  EXPECT_EQ(headers.get("Mcp-Session-Id"), "abc");
  EXPECT_EQ(headers.get("MCP-Protocol-Version"), "2025-06-18");
  EXPECT_FALSE(headers.has("Mcp-Method"));
  // Responses to requests of the server belong to the session.
  EXPECT_EQ(state.headers_for(message(R"({"jsonrpc":"2.0","id":7,"result":{}})")).get("Mcp-Session-Id"),
            "abc");
  // A second handshake is sent without session headers.
  EXPECT_FALSE(state.headers_for(initialize()).has("Mcp-Session-Id"));
  state.on_send(initialize());
  EXPECT_TRUE(state.session_id().empty());
}

TEST(StreamableStateTest, InvalidSessionIdIsRejected) {
  StreamableState state;
  EXPECT_FALSE(state.set_session_id("a b"));
  EXPECT_FALSE(state.set_session_id("a\r\nX: y"));
  EXPECT_TRUE(state.session_id().empty());
}

}  // namespace
}  // namespace fairlead::transport
