// Request rules: the era of a request, and the checks that reject it.
#include "transport/request_rules.hpp"

#include <gtest/gtest.h>

namespace fairlead::transport {
namespace {

const std::string kMeta =
    R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}})";
const std::string kModernVersion = "2026-07-28";

mcp::HeaderParams header_params(std::string_view tool) {
  if (tool != "deploy") return nullptr;
  constexpr std::string_view kSchema =
      R"({"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}})";
  return mcp::read_header_annotations(json::View(kSchema)).shared_params();
}

std::string request(const std::string& method, const std::string& params) {
  return R"({"jsonrpc":"2.0","id":7,"method":")" + method + R"(","params":)" + params + "}";
}
// Returns "legacy", "modern", or the status and code of the refusal.
std::string classify_text(const http::Headers& headers, const std::string& body) {
  const Classification classification =
      classify(HeaderFacts(headers), rpc::Message::parse(Bytes::copy_of(body)), header_params);
  if (classification.refusal)
    return std::to_string(classification.refusal->http_status) + " " +
           std::to_string(classification.refusal->rpc_code);
  return classification.era == Era::modern ? "modern" : "legacy";
}
http::Headers headers_of(std::string version, std::string method, std::string name = {}) {
  http::Headers headers;
  if (!version.empty()) headers.add("mcp-protocol-version", std::move(version));
  if (!method.empty()) headers.add("MCP-METHOD", std::move(method));
  if (!name.empty()) headers.add("mcp-name", std::move(name));
  return headers;
}
std::string meta(const std::string& version) {
  return R"({"_meta":{"io.modelcontextprotocol/protocolVersion":")" + version +
         R"(","io.modelcontextprotocol/clientCapabilities":{}}})";
}

TEST(RequestRulesTest, MessageWithoutModernVersionIsLegacy) {
  const std::string init = request("initialize", R"({"protocolVersion":"2025-11-25","capabilities":{}})");
  EXPECT_EQ(classify_text({}, init), "legacy");
  EXPECT_EQ(classify_text(headers_of("2025-11-25", "initialize"), init), "legacy");
  EXPECT_EQ(classify_text(headers_of("2025-03-26", ""), request("tools/list", "{}")), "legacy");
  EXPECT_EQ(classify_text({}, request("ping", "{}")), "legacy");
  EXPECT_EQ(classify_text({}, R"({"jsonrpc":"2.0","id":1,"result":{}})"), "legacy");
  EXPECT_EQ(classify_text(headers_of("2025-11-25", "notifications/initialized"),
                          R"({"jsonrpc":"2.0","method":"notifications/initialized"})"),
            "legacy");
  EXPECT_EQ(classify_text({}, "[" + request("ping", "{}") + "]"), "legacy");
}

TEST(RequestRulesTest, MessageIsModernWhenHeaderOrBodyNamesModernVersion) {
  EXPECT_EQ(classify_text(headers_of(kModernVersion, "tools/list"), request("tools/list", "{" + kMeta + "}")),
            "modern");
  EXPECT_EQ(classify_text(headers_of(kModernVersion, "server/discover"),
                          request("server/discover", "{" + kMeta + "}")),
            "modern");
  EXPECT_EQ(classify_text(headers_of(kModernVersion, ""), R"({"jsonrpc":"2.0","method":"notifications/x"})"),
            "modern");
  EXPECT_EQ(classify_text({}, R"({"jsonrpc":"2.0","method":"notifications/x","params":{)" + kMeta + "}}"),
            "modern");
  // Removed methods are modern requests too; the server responds that the method does not exist.
  EXPECT_EQ(classify_text(headers_of(kModernVersion, "initialize"), request("initialize", "{" + kMeta + "}")),
            "modern");
}

TEST(RequestRulesTest, RefusalsFollowOrderOfProtocol) {
  // First the envelope, even if the headers are valid.
  EXPECT_EQ(classify_text(headers_of(kModernVersion, "tools/list"), request("tools/list", "{}")),
            "400 -32602");
  EXPECT_EQ(classify_text(headers_of(kModernVersion, "tools/list"),
                          R"({"jsonrpc":"2.0","id":7,"method":"tools/list"})"),
            "400 -32602");
  EXPECT_EQ(classify_text(headers_of(kModernVersion, "tools/list"),
                          request("tools/list",
                                  R"({"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}})")),
            "400 -32602");
  EXPECT_EQ(classify_text(headers_of("v999.0.0", "x"), request("tools/list", "{}")), "400 -32602");
  EXPECT_EQ(classify_text({}, request("server/discover", "{}")), "400 -32602");
  // Then the version header against the body, even for unknown versions.
  EXPECT_EQ(classify_text(headers_of(kModernVersion, "tools/list"), request("tools/list", meta("v999.0.0"))),
            "400 -32020");
  EXPECT_EQ(
      classify_text(headers_of("2025-11-25", "tools/list"), request("tools/list", meta(kModernVersion))),
      "400 -32020");
  EXPECT_EQ(classify_text({}, request("tools/list", meta(kModernVersion))), "400 -32020");
  // Then the version itself.
  EXPECT_EQ(classify_text(headers_of("v999.0.0", "nothing/like/it"), request("tools/list", meta("v999.0.0"))),
            "400 -32022");
  EXPECT_EQ(classify_text(headers_of("2025-11-25", "tools/list"), request("tools/list", meta("2025-11-25"))),
            "400 -32022");
  // Then method and name.
  EXPECT_EQ(classify_text(headers_of(kModernVersion, ""), request("tools/list", meta(kModernVersion))),
            "400 -32020");
  EXPECT_EQ(
      classify_text(headers_of(kModernVersion, "Tools/List"), request("tools/list", meta(kModernVersion))),
      "400 -32020");
  EXPECT_EQ(classify_text(headers_of(kModernVersion, "initialize"),
                          request("initialize", R"({"protocolVersion":"2025-11-25"})")),
            "404 -32601");
}

TEST(RequestRulesTest, RefusalOfUnsupportedVersionListsSupportedOnes) {
  const Classification classification =
      classify(HeaderFacts(headers_of("v999.0.0", "a")),
               rpc::Message::parse(Bytes::copy_of(request("a", meta("v999.0.0")))), header_params);
  EXPECT_EQ(classification.refusal->data, R"({"supported":["2026-07-28"],"requested":"v999.0.0"})");
}

TEST(RequestRulesTest, RevisionWithEscapesInTheBodyMatchesHeader) {
  std::string body = request("tools/list", meta(kModernVersion));
  const std::size_t hyphen = body.find(kModernVersion) + kModernVersion.find('-');
  body.replace(hyphen, 1, "\\u002d");
  EXPECT_EQ(classify_text(headers_of(kModernVersion, "tools/list"), body), "modern");
  EXPECT_EQ(classify_text(headers_of("2025-06-18", "tools/list"), body), "400 -32020");
}

TEST(RequestRulesTest, NameHeaderMustMatchBody) {
  const std::string call = request("tools/call", R"({"name":"a b",)" + kMeta + "}");
  EXPECT_EQ(classify_text(headers_of(kModernVersion, "tools/call", "a b"), call), "modern");
  EXPECT_EQ(classify_text(headers_of(kModernVersion, "tools/call", "  a b\t"), call), "modern");
  EXPECT_EQ(classify_text(headers_of(kModernVersion, "tools/call", "=?base64?YSBi?="), call), "modern");
  EXPECT_EQ(classify_text(headers_of(kModernVersion, "tools/call", "A B"), call), "400 -32020");
  EXPECT_EQ(classify_text(headers_of(kModernVersion, "tools/call"), call), "400 -32020");
  http::Headers twice = headers_of(kModernVersion, "tools/call", "a b");
  twice.add("Mcp-Name", "other");
  EXPECT_EQ(classify_text(twice, call), "400 -32020");
  EXPECT_EQ(classify_text(headers_of(kModernVersion, "resources/read", "x:y"),
                          request("resources/read", R"({"uri":"x:y",)" + kMeta + "}")),
            "modern");
  EXPECT_EQ(classify_text(headers_of(kModernVersion, "tasks/get", "1"),
                          request("tasks/get", R"({"taskId":"2",)" + kMeta + "}")),
            "400 -32020");
  // A missing name is rejected by the method itself.
  EXPECT_EQ(classify_text(headers_of(kModernVersion, "tools/call"), request("tools/call", "{" + kMeta + "}")),
            "modern");
}

TEST(RequestRulesTest, ParamHeadersMustMatchBody) {
  const std::string call =
      request("tools/call", R"({"name":"deploy","arguments":{"region":"Hello"},)" + kMeta + "}");
  http::Headers headers = headers_of(kModernVersion, "tools/call", "deploy");
  EXPECT_EQ(classify_text(headers, call), "400 -32020");
  headers.add("mcp-param-region", "=?base64?SGVsbG8=?=");
  EXPECT_EQ(classify_text(headers, call), "modern");
  headers.set("mcp-param-region", "=?base64?SGVsbG8?=");
  EXPECT_EQ(classify_text(headers, call), "400 -32020");
  headers.set("mcp-param-region", "Hello");
  headers.add("Mcp-Param-Region", "Hello");
  EXPECT_EQ(classify_text(headers, call), "400 -32020");
}

TEST(RequestRulesTest, MalformedMessageIsRejectedWithoutNullId) {
  EXPECT_EQ(classify_text({}, "{"), "400 -32700");
  EXPECT_EQ(classify_text({}, "[]"), "400 -32600");
  EXPECT_EQ(classify_text({}, "7"), "400 -32600");
  EXPECT_EQ(classify_text({}, R"({"jsonrpc":"2.0","id":null,"method":"ping"})"), "400 -32600");
  EXPECT_EQ(classify_text({}, "[" + request("tools/list", "{" + kMeta + "}") + "]"), "400 -32600");
  EXPECT_EQ(classify_text(headers_of(kModernVersion, ""), "[" + request("tools/list", "{}") + "]"),
            "400 -32600");
  EXPECT_EQ(classify_text(headers_of(kModernVersion, ""), R"({"jsonrpc":"2.0","id":1,"result":{}})"),
            "400 -32600");
  const Refusal refusal{400, -32600, "no"};
  EXPECT_EQ(to_response(refusal, "null").body.front().view(),
            R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}})");
  EXPECT_EQ(to_response(refusal, "\"a\"").body.front().view(),
            R"({"jsonrpc":"2.0","id":"a","error":{"code":-32600,"message":"no"}})");
}

TEST(RequestRulesTest, AcceptHeaderSelectsMediaTypes) {
  const auto accepted = [](const char* value) {
    const AcceptedTypes types = accepted_types(http::Headers{{"accept", value}});
    return std::string(types.json ? "json " : "") + (types.events ? "events" : "");
  };
  EXPECT_EQ(accepted("application/json, text/event-stream"), "json events");
  EXPECT_EQ(accepted("text/event-stream"), "events");
  EXPECT_EQ(accepted("Application/JSON;q=0.9"), "json ");
  EXPECT_EQ(accepted("*/*"), "json events");
  EXPECT_EQ(accepted("text/*"), "events");
  EXPECT_EQ(accepted("text/html, application/jsonx"), "");
  EXPECT_EQ(accepted(" ,,"), "");
  EXPECT_TRUE(accepted_types({}).events);
  EXPECT_TRUE(has_json_body(http::Headers{{"Content-Type", "application/json ; charset=utf-8"}}));
  EXPECT_FALSE(has_json_body(http::Headers{{"Content-Type", "text/plain"}}));
  EXPECT_FALSE(has_json_body({}));
}

}  // namespace
}  // namespace fairlead::transport
