// Values of the wrong type in every field of every method are rejected with a clear error, and the next
// request is served.
#include "mcp/bad_input.hpp"

namespace fairlead::mcp {
namespace {

// A value of every JSON type, with a letter that stands for the type.
constexpr std::pair<char, const char*> kValues[] = {{'s', "\"made up\""}, {'i', "7"},    {'f', "1.5"},
                                                    {'b', "true"},        {'z', "null"}, {'a', "[[]]"},
                                                    {'o', R"({"x":{}})"}};

struct Field {
  const char* method;
  const char* members;        // of params; % stands for the value under test
  const char* allowed_types;  // letters of the types that are not rejected
};

std::string filled(std::string text, const std::string& value) {
  return text.replace(text.find('%'), 1, value);
}

TEST_F(BadInputTest, WrongTypesAreRejectedInEveryField) {
  constexpr Field kFields[] = {
      {"initialize", R"("protocolVersion":%,"capabilities":{})", "s"},
      {"initialize", R"("protocolVersion":"2025-11-25","capabilities":%)", "o"},
      {"initialize", R"("protocolVersion":"2025-11-25","capabilities":{},"clientInfo":%)", "o"},
      {"tools/list", R"("cursor":%)", ""},
      {"resources/list", R"("cursor":%)", ""},
      {"resources/templates/list", R"("cursor":%)", ""},
      {"prompts/list", R"("cursor":%)", ""},
      {"tools/call", R"("name":%,"arguments":{"message":""})", ""},
      {"tools/call", R"("name":"echo","arguments":%)", "oz"},
      {"resources/read", R"("uri":%)", "s"},
      {"resources/subscribe", R"("uri":%)", "s"},
      {"resources/unsubscribe", R"("uri":%)", "s"},
      {"prompts/get", R"("name":%)", ""},
      {"prompts/get", R"("name":"hello","arguments":%)", ""},
      {"prompts/get", R"("name":"hello","arguments":{"who":%})", "s"},
      {"completion/complete", R"("ref":%,"argument":{"name":"who","value":""})", ""},
      {"completion/complete", R"("ref":{"type":%},"argument":{"name":"who","value":""})", ""},
      {"completion/complete", R"("ref":{"type":"ref/prompt","name":%},"argument":{"name":"who","value":""})",
       ""},
      {"completion/complete", R"("ref":{"type":"ref/resource","uri":%},"argument":{"name":"who","value":""})",
       ""},
      {"completion/complete", R"("ref":{"type":"ref/prompt","name":"hello"},"argument":%)", ""},
      {"completion/complete",
       R"("ref":{"type":"ref/prompt","name":"hello"},"argument":{"name":%,"value":""})", "s"},
      {"completion/complete",
       R"("ref":{"type":"ref/prompt","name":"hello"},"argument":{"name":"who","value":%})", "s"},
      {"completion/complete",
       R"("ref":{"type":"ref/prompt","name":"hello"},"argument":{"name":"who","value":""},"context":%)", "o"},
      {"completion/complete",
       R"("ref":{"type":"ref/prompt","name":"hello"},"argument":{"name":"who","value":""},"context":{"arguments":%})",
       ""},
      {"completion/complete",
       R"("ref":{"type":"ref/prompt","name":"hello"},"argument":{"name":"who","value":""},"context":{"arguments":{"x":%}})",
       "s"},
      {"logging/setLevel", R"("level":%)", ""},
  };
  start_legacy();
  for (const Field& field : kFields) {
    for (const auto& [letter, value] : kValues) {
      if (std::string_view(field.allowed_types).find(letter) != std::string_view::npos) continue;
      const std::string members = filled(field.members, value);
      const std::string got = legacy(field.method, "{" + members + "}");
      EXPECT_TRUE(has_code(got, -32602)) << field.method << " " << members << ": " << got;
      EXPECT_TRUE(still_serves());
      if (std::string_view(field.method) == "initialize" ||
          std::string_view(field.method).find("ubscribe") != std::string_view::npos ||
          std::string_view(field.method) == "logging/setLevel") {
        continue;  // not a method of the modern era
      }
      const std::string in_modern = modern(field.method, members);
      EXPECT_TRUE(has_code(in_modern, -32602)) << field.method << " " << members << ": " << in_modern;
    }
  }
}

TEST_F(BadInputTest, WrongTypesAreRejectedInModernEnvelopeAndMethods) {
  constexpr Field kFields[] = {
      {"tools/call", R"("name":"ask","arguments":{"message":""},"requestState":%)", ""},
      {"tools/call", R"("name":"ask","arguments":{"message":""},"inputResponses":%)", "o"},
      {"tools/call", R"("name":"ask","arguments":{"message":""},"inputResponses":{"q1":%})", ""},
      {"tools/call", R"("name":"ask","arguments":{"message":""},"inputResponses":{"q1":{"action":%}})", ""},
      {"tools/call", R"("name":"echo","arguments":{"message":""},"requestState":%)", ""},
      {"tools/call", R"("name":"echo","arguments":{"message":""},"inputResponses":%)", "o"},
      {"subscriptions/listen", R"("notifications":%)", "o"},
      {"subscriptions/listen", R"("notifications":{"toolsListChanged":%})", "b"},
      {"subscriptions/listen", R"("notifications":{"promptsListChanged":%})", "b"},
      {"subscriptions/listen", R"("notifications":{"resourcesListChanged":%})", "b"},
      {"subscriptions/listen", R"("notifications":{"resourceSubscriptions":%})", ""},
      {"subscriptions/listen", R"("notifications":{"resourceSubscriptions":[%]})", "s"},
  };
  start();
  const std::string version = R"("io.modelcontextprotocol/protocolVersion":"2026-07-28")";
  const std::string capabilities = R"("io.modelcontextprotocol/clientCapabilities":{})";
  const std::pair<std::string, const char*> kEnvelopes[] = {
      {R"("io.modelcontextprotocol/protocolVersion":%,)" + capabilities, "s"},
      {version + R"(,"io.modelcontextprotocol/clientCapabilities":%)", "o"},
      {version + "," + capabilities + R"(,"io.modelcontextprotocol/clientInfo":%)", "o"},
      {version + "," + capabilities + R"(,"io.modelcontextprotocol/logLevel":%)", ""},
      {version + "," + capabilities + R"(,"progressToken":%)", "siz"},
  };
  for (const auto& [letter, value] : kValues) {
    for (const Field& field : kFields) {
      if (std::string_view(field.allowed_types).find(letter) != std::string_view::npos) continue;
      const std::string got = modern_with(field.method, filled(field.members, value));
      EXPECT_TRUE(has_code(got, -32602)) << field.members << " " << value << ": " << got;
    }
    for (const auto& [meta, allowed_types] : kEnvelopes) {
      if (std::string_view(allowed_types).find(letter) != std::string_view::npos) continue;
      for (const char* method : {"tools/list", "server/discover", "tools/call", "subscriptions/listen"}) {
        const std::string got = legacy(method, R"({"_meta":{)" + filled(meta, value) + "}}");
        EXPECT_TRUE(has_code(got, -32602)) << method << meta << " " << value << ": " << got;
      }
    }
  }
  EXPECT_NE(modern("tools/list").find(R"("result":)"), std::string::npos);
}

TEST_F(BadInputTest, MissingEnvelopeOfModernMethodIsRejected) {
  start();
  const std::string missing =
      R"("message":"_meta: io.modelcontextprotocol/protocolVersion is missing or not a string")";
  EXPECT_EQ(legacy("server/discover"), error(-32602, missing));
  EXPECT_EQ(legacy("subscriptions/listen", R"({"notifications":{}})"), error(-32602, missing));
  EXPECT_EQ(legacy("tools/list", R"({"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}})"),
            error(-32602, missing));
  EXPECT_EQ(round_trip(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})"),
            error(-32600, R"("message":"Invalid Request: initialize must be the first request")"));
}

TEST_F(BadInputTest, ParamsAndMetaAreObjectsOrAbsent) {
  start_legacy();
  for (const char* bad : {"[]", "[1]"})
    EXPECT_EQ(legacy("tools/list", bad), error(-32602, R"("message":"params is not an object")"));
  for (const char* bad : {"[]", "1", "\"x\"", "null"}) {
    EXPECT_EQ(legacy("tools/list", "{\"_meta\":" + std::string(bad) + "}"),
              error(-32602, R"("message":"_meta is not an object")"));
  }
  EXPECT_NE(round_trip(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})").find(R"("tools":[)"),
            std::string::npos);
}

TEST_F(BadInputTest, UnknownFieldsAreTolerated) {
  start_legacy();
  const std::string extra = R"(,"zzz":{"deep":[1,{}]},"task":{"ttl":1}})";
  const std::pair<const char*, const char*> kCalls[] = {
      {"tools/call", R"("name":"echo","arguments":{"message":""})"},
      {"resources/read", R"("uri":"test://fixed")"},
      {"prompts/get", R"("name":"hello")"},
      {"completion/complete",
       R"("ref":{"type":"ref/prompt","name":"hello","x":1},"argument":{"name":"a","value":"","x":1})"},
      {"resources/subscribe", R"("uri":"test://fixed")"},
      {"logging/setLevel", R"("level":"info")"},
      {"initialize",
       R"("protocolVersion":"2025-11-25","capabilities":{"roots":7,"new":{}},"clientInfo":{})"}};
  for (const auto& [method, members] : kCalls) {
    const std::string got = round_trip(R"({"jsonrpc":"2.0","id":1,"new":[],"method":")" +
                                       std::string(method) + R"(","params":{)" + members + extra + "}");
    EXPECT_EQ(got.find(R"({"jsonrpc":"2.0","id":1,"result":)"), 0u) << method << ": " << got;
  }
  EXPECT_NE(
      modern_with("tools/list", R"("zzz":1)", R"(,"com.example/x":{},"traceparent":5)").find(R"("tools":[)"),
      std::string::npos);
}

}  // namespace
}  // namespace fairlead::mcp
