// Validation of x-mcp-header annotations.
#include "fairlead/protocol/header_annotations.hpp"

#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

std::string problem(const std::string& schema) {
  return read_header_annotations(json::View(schema)).problem.value_or("");
}
std::string property(const std::string& inside) {
  return R"({"type":"object","properties":{"a":{)" + inside + "}}}";
}

TEST(HeaderAnnotationsTest, ValidAnnotationsAreAccepted) {
  for (const std::string& schema :
       {std::string(R"({"type":"object"})"), std::string("true"),
        property(R"("type":"string","x-mcp-header":"Region")"),
        property(R"("type":"integer","x-mcp-header":"!#$%&'*+-.^_`|~09azAZ")"),
        property(R"("type":"boolean","x-mcp-header":"B")"),
        property(R"("type":"object","properties":{"b":{"type":"string","x-mcp-header":"Deep"}})"),
        // Here x-mcp-header occurs in data or as the name of a property, not as an annotation.
        property(R"("type":"string","default":{"x-mcp-header":7},"enum":[{"x-mcp-header":7}])"),
        std::string(R"({"type":"object","properties":{"x-mcp-header":{"type":"number"}}})")}) {
    EXPECT_EQ(problem(schema), "") << schema;
  }
}

TEST(HeaderAnnotationsTest, InvalidAnnotationsHaveReason) {
  const std::string annotated = R"({"type":"string","x-mcp-header":"H"})";
  EXPECT_EQ(problem(R"({"type":"object","x-mcp-header":"H"})"), "x-mcp-header is at the root of the schema");
  for (const char* name : {R"("")", R"("a b")", R"("a:b")", R"("é")", "7", "null", "{}", R"("a\n")"}) {
    EXPECT_EQ(problem(property(R"("type":"string","x-mcp-header":)" + std::string(name))),
              "x-mcp-header at /a is not a header name")
        << name;
  }
  for (const char* type :
       {R"("type":"number",)", R"("type":"object",)", R"("type":["string"],)", R"("$ref":"#/x",)", ""}) {
    EXPECT_EQ(problem(property(type + std::string(R"("x-mcp-header":"H")"))),
              "x-mcp-header at /a is on a type other than string, integer or boolean")
        << type;
  }
  EXPECT_EQ(
      problem(
          R"({"properties":{"a":{"type":"string","x-mcp-header":"Name"},"b":{"properties":{"c":{"type":"string","x-mcp-header":"nAME"}}}}})"),
      "x-mcp-header at /b/c names `nAME` a second time");
  for (const std::string keyword : {"items", "contains", "additionalProperties", "unevaluatedProperties",
                                    "unevaluatedItems", "propertyNames", "not", "if", "then", "else"}) {
    EXPECT_EQ(problem("{\"" + keyword + "\":" + annotated + "}"),
              "x-mcp-header at /" + keyword + " is not reached through `properties` alone");
  }
  for (const std::string keyword : {"prefixItems", "oneOf", "anyOf", "allOf", "items"}) {
    EXPECT_NE(problem("{\"" + keyword + "\":[true," + annotated + "]}"), "") << keyword;
  }
  for (const std::string keyword : {"patternProperties", "dependentSchemas", "$defs", "definitions"}) {
    EXPECT_NE(problem("{\"" + keyword + "\":{\"k\":" + annotated + "}}"), "") << keyword;
  }
  EXPECT_NE(problem(R"({"items":{"properties":{"a":)" + annotated + "}}}"), "");
  EXPECT_NE(problem(R"({"\u0078-mcp-header":"H"})"), "");  // an escaped key is found too
}

TEST(HeaderAnnotationsTest, SchemaWithTooManyAnnotationsHasReason) {
  std::string properties;
  for (int i = 0; i < 33; ++i) {
    const std::string name = std::to_string(i);
    properties += (i > 0 ? ",\"" : "\"") + name + R"(":{"type":"string","x-mcp-header":"H)" + name + "\"}";
  }
  EXPECT_EQ(problem(R"({"properties":{)" + properties + "}}"),
            "x-mcp-header occurs more often than max_header_params (32)");
}

TEST(HeaderAnnotationsTest, SchemaOverLimitHasReason) {
  ListLimits limits;
  limits.max_schema_bytes = 20;
  limits.max_schema_depth = 2;
  EXPECT_EQ(schema_limit_problem("inputSchema", json::View(R"({"a":[1]})"), limits), std::nullopt);
  EXPECT_EQ(schema_limit_problem("inputSchema", json::View(), limits), std::nullopt);
  EXPECT_EQ(schema_limit_problem("inputSchema", json::View(R"({"a":[[1]]})"), limits),
            "its `inputSchema` is over the limit max_schema_depth (2)");
  EXPECT_EQ(schema_limit_problem("outputSchema", json::View(R"({"a":"0123456789012"})"), limits),
            "its `outputSchema` is over the limit max_schema_bytes (20)");
}

TEST_F(ServerTest, ClientOmitsToolsWithInvalidAnnotations) {
  ToolSpec spec;
  spec.name = "bad";
  spec.input_schema =
      test::raw(R"({"type":"object","properties":{"n":{"type":"number","x-mcp-header":"N"}}})");
  ASSERT_TRUE(server.add_tool(spec, Server::PlainTool()));
  spec.name = "good";
  spec.input_schema =
      test::raw(R"({"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}})");
  ASSERT_TRUE(server.add_tool(spec, Server::PlainTool()));
  start();
  std::string logged;
  ClientOptions options;
  options.connect.log =
      Log(LogLevel::warning, LogFormat::text, [&](std::string_view line) { logged += line; });
  const Result<std::shared_ptr<Client>> client = loop.block_on(Client::connect_over(test_end, options));
  ASSERT_TRUE(client);
  const auto tools = loop.block_on((*client)->tools());
  ASSERT_TRUE(tools);
  EXPECT_EQ(tools->size(), 4u);  // echo, add, half and good
  EXPECT_NE(logged.find("bad"), std::string::npos) << logged;
  EXPECT_NE(logged.find("other than string, integer or boolean"), std::string::npos) << logged;
  loop.block_on((*client)->close());
}

}  // namespace
}  // namespace fairlead::mcp
