// Which era a request belongs to and how it is refused.
#include "transport/request_rules.hpp"

#include <gtest/gtest.h>

namespace fairlead::transport {
namespace {

const std::string kMeta =
    R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}})";
const std::string kModern = "2026-07-28";

mcp::HeaderParams params_of(std::string_view tool) {
  if (tool != "deploy") return nullptr;
  constexpr std::string_view kSchema =
      R"({"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}})";
  return mcp::read_header_annotations(json::View(kSchema)).shared();
}

std::string request(const std::string& method, const std::string& params) {
  return R"({"jsonrpc":"2.0","id":7,"method":")" + method + R"(","params":)" + params + "}";
}
// "legacy", "modern", or status and code of the refusal.
std::string judged(const http::Headers& headers, const std::string& body) {
  const Verdict verdict = judge(headers, rpc::Message::parse(Bytes::copy_of(body)), params_of);
  if (verdict.refusal)
    return std::to_string(verdict.refusal->status) + " " + std::to_string(verdict.refusal->code);
  return verdict.era == Era::modern ? "modern" : "legacy";
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

TEST(RequestRules, LegacyIsWhatSaysNothingElse) {
  const std::string init = request("initialize", R"({"protocolVersion":"2025-11-25","capabilities":{}})");
  EXPECT_EQ(judged({}, init), "legacy");
  EXPECT_EQ(judged(headers_of("2025-11-25", "initialize"), init), "legacy");
  EXPECT_EQ(judged(headers_of("2025-03-26", ""), request("tools/list", "{}")), "legacy");
  EXPECT_EQ(judged({}, request("ping", "{}")), "legacy");
  EXPECT_EQ(judged({}, R"({"jsonrpc":"2.0","id":1,"result":{}})"), "legacy");
  EXPECT_EQ(judged(headers_of("2025-11-25", "notifications/initialized"),
                   R"({"jsonrpc":"2.0","method":"notifications/initialized"})"),
            "legacy");
  EXPECT_EQ(judged({}, "[" + request("ping", "{}") + "]"), "legacy");
}

TEST(RequestRules, ModernIsWhatClaimsItInHeaderOrBody) {
  EXPECT_EQ(judged(headers_of(kModern, "tools/list"), request("tools/list", "{" + kMeta + "}")), "modern");
  EXPECT_EQ(judged(headers_of(kModern, "server/discover"), request("server/discover", "{" + kMeta + "}")),
            "modern");
  EXPECT_EQ(judged(headers_of(kModern, ""), R"({"jsonrpc":"2.0","method":"notifications/x"})"), "modern");
  EXPECT_EQ(judged({}, R"({"jsonrpc":"2.0","method":"notifications/x","params":{)" + kMeta + "}}"), "modern");
  // Removed methods are modern requests all the same: whoever serves them answers that there is none.
  EXPECT_EQ(judged(headers_of(kModern, "initialize"), request("initialize", "{" + kMeta + "}")), "modern");
}

TEST(RequestRules, RefusalsComeInTheOrderOfTheProtocol) {
  // The envelope, although the header is right.
  EXPECT_EQ(judged(headers_of(kModern, "tools/list"), request("tools/list", "{}")), "400 -32602");
  EXPECT_EQ(judged(headers_of(kModern, "tools/list"), R"({"jsonrpc":"2.0","id":7,"method":"tools/list"})"),
            "400 -32602");
  EXPECT_EQ(
      judged(headers_of(kModern, "tools/list"),
             request("tools/list", R"({"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}})")),
      "400 -32602");
  EXPECT_EQ(judged(headers_of("v999.0.0", "x"), request("tools/list", "{}")), "400 -32602");
  EXPECT_EQ(judged({}, request("server/discover", "{}")), "400 -32602");
  // Then header against body, even for versions nobody has.
  EXPECT_EQ(judged(headers_of(kModern, "tools/list"), request("tools/list", meta("v999.0.0"))), "400 -32020");
  EXPECT_EQ(judged(headers_of("2025-11-25", "tools/list"), request("tools/list", meta(kModern))),
            "400 -32020");
  EXPECT_EQ(judged({}, request("tools/list", meta(kModern))), "400 -32020");
  // Then the version itself.
  EXPECT_EQ(judged(headers_of("v999.0.0", "nothing/like/it"), request("tools/list", meta("v999.0.0"))),
            "400 -32022");
  EXPECT_EQ(judged(headers_of("2025-11-25", "tools/list"), request("tools/list", meta("2025-11-25"))),
            "400 -32022");
  // Then method and name.
  EXPECT_EQ(judged(headers_of(kModern, ""), request("tools/list", meta(kModern))), "400 -32020");
  EXPECT_EQ(judged(headers_of(kModern, "Tools/List"), request("tools/list", meta(kModern))), "400 -32020");
  EXPECT_EQ(
      judged(headers_of(kModern, "initialize"), request("initialize", R"({"protocolVersion":"2025-11-25"})")),
      "404 -32601");
}

TEST(RequestRules, UnsupportedVersionsAreToldWhatThereIs) {
  const Verdict verdict =
      judge(headers_of("v999.0.0", "a"), rpc::Message::parse(Bytes::copy_of(request("a", meta("v999.0.0")))),
            params_of);
  EXPECT_EQ(verdict.refusal->data, R"({"supported":["2026-07-28"],"requested":"v999.0.0"})");
}

TEST(RequestRules, NamesInHeadersMustBeThoseOfTheBody) {
  const std::string call = request("tools/call", R"({"name":"a b",)" + kMeta + "}");
  EXPECT_EQ(judged(headers_of(kModern, "tools/call", "a b"), call), "modern");
  EXPECT_EQ(judged(headers_of(kModern, "tools/call", "  a b\t"), call), "modern");
  EXPECT_EQ(judged(headers_of(kModern, "tools/call", "=?base64?YSBi?="), call), "modern");
  EXPECT_EQ(judged(headers_of(kModern, "tools/call", "A B"), call), "400 -32020");
  EXPECT_EQ(judged(headers_of(kModern, "tools/call"), call), "400 -32020");
  http::Headers twice = headers_of(kModern, "tools/call", "a b");
  twice.add("Mcp-Name", "other");
  EXPECT_EQ(judged(twice, call), "400 -32020");
  EXPECT_EQ(judged(headers_of(kModern, "resources/read", "x:y"),
                   request("resources/read", R"({"uri":"x:y",)" + kMeta + "}")),
            "modern");
  EXPECT_EQ(
      judged(headers_of(kModern, "tasks/get", "1"), request("tasks/get", R"({"taskId":"2",)" + kMeta + "}")),
      "400 -32020");
  // No name at all is for the method to refuse.
  EXPECT_EQ(judged(headers_of(kModern, "tools/call"), request("tools/call", "{" + kMeta + "}")), "modern");
}

TEST(RequestRules, ArgumentsInHeadersMustBeThoseOfTheBody) {
  const std::string call =
      request("tools/call", R"({"name":"deploy","arguments":{"region":"Hello"},)" + kMeta + "}");
  http::Headers headers = headers_of(kModern, "tools/call", "deploy");
  EXPECT_EQ(judged(headers, call), "400 -32020");
  headers.add("mcp-param-region", "=?base64?SGVsbG8=?=");
  EXPECT_EQ(judged(headers, call), "modern");
  headers.set("mcp-param-region", "=?base64?SGVsbG8?=");
  EXPECT_EQ(judged(headers, call), "400 -32020");
  headers.set("mcp-param-region", "Hello");
  headers.add("Mcp-Param-Region", "Hello");
  EXPECT_EQ(judged(headers, call), "400 -32020");
}

TEST(RequestRules, WhatIsNoMessageIsRefusedWithoutANullId) {
  EXPECT_EQ(judged({}, "{"), "400 -32700");
  EXPECT_EQ(judged({}, "[]"), "400 -32600");
  EXPECT_EQ(judged({}, "7"), "400 -32600");
  EXPECT_EQ(judged({}, R"({"jsonrpc":"2.0","id":null,"method":"ping"})"), "400 -32600");
  EXPECT_EQ(judged({}, "[" + request("tools/list", "{" + kMeta + "}") + "]"), "400 -32600");
  EXPECT_EQ(judged(headers_of(kModern, ""), "[" + request("tools/list", "{}") + "]"), "400 -32600");
  EXPECT_EQ(judged(headers_of(kModern, ""), R"({"jsonrpc":"2.0","id":1,"result":{}})"), "400 -32600");
  const Refusal refusal{400, -32600, "no"};
  EXPECT_EQ(refuse(refusal, "null").body.front().view(),
            R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}})");
  EXPECT_EQ(refuse(refusal, "\"a\"").body.front().view(),
            R"({"jsonrpc":"2.0","id":"a","error":{"code":-32600,"message":"no"}})");
}

TEST(RequestRules, AcceptSaysWhatTheClientTakes) {
  const auto takes = [](const char* value) {
    const Accepts accepts = accepts_of(http::Headers{{"accept", value}});
    return std::string(accepts.json ? "json " : "") + (accepts.events ? "events" : "");
  };
  EXPECT_EQ(takes("application/json, text/event-stream"), "json events");
  EXPECT_EQ(takes("text/event-stream"), "events");
  EXPECT_EQ(takes("Application/JSON;q=0.9"), "json ");
  EXPECT_EQ(takes("*/*"), "json events");
  EXPECT_EQ(takes("text/*"), "events");
  EXPECT_EQ(takes("text/html, application/jsonx"), "");
  EXPECT_EQ(takes(" ,,"), "");
  EXPECT_TRUE(accepts_of({}).events);
  EXPECT_TRUE(has_json_body(http::Headers{{"Content-Type", "application/json ; charset=utf-8"}}));
  EXPECT_FALSE(has_json_body(http::Headers{{"Content-Type", "text/plain"}}));
  EXPECT_FALSE(has_json_body({}));
}

}  // namespace
}  // namespace fairlead::transport
