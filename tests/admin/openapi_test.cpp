// The OpenAPI document: it describes every route, and real answers are valid by its schemas.
#include <set>

#include "admin/openapi.hpp"
#include "admin/routes.hpp"
#include "admin/schemas.hpp"
#include "fairlead/json/writer.hpp"
#include "harness.hpp"

namespace fairlead::admin::test {
namespace {

class OpenApiTest : public AdminTest {
 protected:
  OpenApiTest() {
    registry_options_.secret_key.file = directory_ / "secret.key";
    registry_options_.secret_key.manage_file = true;
  }
  void SetUp() override {
    AdminTest::SetUp();
    document_ = get("/openapi.json").body;
  }
  json::View document() const { return json::View(document_); }
  // Compiles the schema of a response: that of the document with all components.
  json::Schema schema_of(const std::string& path, const std::string& method, const std::string& status,
                         const std::string& type = "application/json") {
    const json::View schema =
        document()["paths"][path][method]["responses"][status]["content"][type]["schema"];
    EXPECT_FALSE(schema.absent()) << method << " " << path << " " << status;
    if (schema.absent()) return {};
    json::Writer writer;
    writer.begin_object().key("components").raw(document()["components"].text());
    writer.key("allOf").begin_array().raw(schema.text()).end_array().end_object();
    const Result<json::Schema> compiled = json::Schema::compile(writer.text());
    EXPECT_TRUE(compiled) << compiled.error().to_string();
    return compiled ? *compiled : json::Schema();
  }
  // Checks an answer against the schema for its status, and problems against the schema of errors.
  void check(const std::string& method, const std::string& path, const std::string& route,
             const std::string& body = {}, int status = 200) {
    const Answer answer = request(method, path, body);
    EXPECT_EQ(answer.status, status) << method << " " << path << " " << answer.body;
    std::string verb = method;
    std::ranges::transform(verb, verb.begin(), [](char c) { return static_cast<char>(c + 32); });
    const bool failed = answer.status >= 400;
    const json::Schema schema =
        failed ? schema_of("/api/v1" + route, verb, "default", "application/problem+json")
               : schema_of("/api/v1" + route, verb, std::to_string(answer.status));
    const auto violation = schema.validate(answer.body);
    EXPECT_FALSE(violation) << method << " " << path << ": " << violation->message << "\n" << answer.body;
  }

  std::string document_;
};

TEST_F(OpenApiTest, DescribesEveryRouteOnce) {
  std::set<std::string_view> operations;
  const RouteTable table = admin_routes();
  for (const Route& route : table.routes()) {
    const std::string path = (route.area ? std::string(kApiPrefix) : std::string()) + std::string(route.path);
    std::string method(route.method);
    std::ranges::transform(method, method.begin(), [](char c) { return static_cast<char>(c + 32); });
    const json::View operation = document()["paths"][path][method];
    EXPECT_EQ(operation["operationId"].as_string(), route.operation) << path;
    EXPECT_FALSE(operation["summary"].as_string().value_or("").empty()) << path;
    EXPECT_GT(operation["responses"].size(), 1u) << path;
    EXPECT_TRUE(operations.insert(route.operation).second) << route.operation << " is used twice";
    EXPECT_NE(route.handler, nullptr) << path;
  }
  EXPECT_EQ(document()["openapi"].as_string(), "3.1.0");
}

TEST_F(OpenApiTest, EveryReferencedSchemaExistsAndCompiles) {
  std::set<std::string> names;
  for (const ComponentSchema& schema : component_schemas()) {
    EXPECT_TRUE(names.insert(std::string(schema.name)).second);
    ASSERT_FALSE(json::validate(schema.json)) << schema.name;
  }
  const std::string prefix = "#/components/schemas/";
  for (std::size_t at = document_.find(prefix); at != std::string::npos;
       at = document_.find(prefix, at + 1)) {
    const std::size_t begin = at + prefix.size();
    EXPECT_TRUE(names.contains(document_.substr(begin, document_.find('"', begin) - begin)));
  }
}

// Every route answers requests without a token with 401, so every route is protected.
TEST_F(OpenApiTest, EveryRouteNeedsAToken) {
  on_loop([&] { mode_ = AuthMode::none; });
  const RouteTable table = admin_routes();
  for (const Route& route : table.routes()) {
    std::string path(route.path);
    const std::size_t open = path.find('{');
    if (open != std::string::npos) path.replace(open, path.find('}') - open + 1, "x");
    const int expected = route.area ? 401 : 200;
    EXPECT_EQ(request(std::string(route.method), path, {}, {}, "").status, expected) << path;
  }
}

TEST_F(OpenApiTest, AnswersAreValidByTheSchemas) {
  const std::string body = server_body("files").insert(
      1, R"("tags":["a"],"title":"T","tools":{"hide":["x"]},"metadata":{"k":1},)");
  check("POST", "/mcp/servers", "/mcp/servers", body, 201);
  check("POST", "/mcp/servers", "/mcp/servers", body, 409);
  check("POST", "/mcp/servers", "/mcp/servers", R"({"name":1})", 422);
  check("GET", "/mcp/servers?limit=1", "/mcp/servers");
  check("GET", "/mcp/servers/files", "/mcp/servers/{id}");
  check("PATCH", "/mcp/servers/files", "/mcp/servers/{id}", R"({"title":"x"})");
  check("POST", "/mcp/servers/files/test", "/mcp/servers/{id}/test");
  check("POST", "/mcp/servers/files/refresh", "/mcp/servers/{id}/refresh");
  check("GET", "/mcp/servers/files/tools", "/mcp/servers/{id}/tools");
  check("GET", "/tools", "/tools");
  check("GET", "/mcp/servers/files/logs", "/mcp/servers/{id}/logs");
  check("POST", "/mcp/servers/files/restart", "/mcp/servers/{id}/restart");
  check("GET", "/processes", "/processes");
  check("POST", "/mcp/servers/files/stop", "/mcp/servers/{id}/stop", "", 202);
  check("GET", "/sessions", "/sessions");
  check("POST", "/users", "/users", R"({"name":"ann","title":"Ann","role":"admin"})", 201);
  check("GET", "/users", "/users");
  check("GET", "/users/ann", "/users/{id}");
  check("PATCH", "/users/ann", "/users/{id}", R"({"title":"x"})");
  check("POST", "/groups", "/groups", R"({"name":"g"})", 201);
  check("GET", "/groups", "/groups");
  check("GET", "/groups/g", "/groups/{id}");
  check("PATCH", "/groups/g", "/groups/{id}", R"({"title":"x"})");
  check("POST", "/tokens", "/tokens", R"({"user":"ann","scopes":["mcp"],"expires":"12h"})", 201);
  check("GET", "/tokens", "/tokens");
  check("POST", "/endpoints", "/endpoints", R"({"name":"dev","servers":["f*"],"rename":{"a":"b"}})", 201);
  check("GET", "/endpoints", "/endpoints");
  check("GET", "/endpoints/dev", "/endpoints/{id}");
  check("PATCH", "/endpoints/dev", "/endpoints/{id}", R"({"mode":"discover"})");
  check("GET", "/config?limit=500", "/config");
  check("GET", "/config/mcp.max_stdio_processes", "/config/{key}");
  check("PUT", "/config/mcp.max_stdio_processes", "/config/{key}", R"({"value":7})");
  check("POST", "/secrets", "/secrets", R"({"name":"KEY","value":"hunter2-hunter2"})", 201);
  check("GET", "/secrets", "/secrets");
  check("GET", "/secrets/status", "/secrets/status");
  check("POST", "/secrets/rekey", "/secrets/rekey", R"({"dataKey":true})");
  check("PATCH", "/mcp/servers/files", "/mcp/servers/{id}", R"({"config":{"env":{"A":"${secret:KEY}"}}})");
  check("GET", "/mcp/servers/files/secrets?limit=1", "/mcp/servers/{id}/secrets");
  check("GET", "/config/nothing", "/config/{key}", "", 404);
  check("GET", "/drift", "/drift");
  check("GET", "/users/none", "/users/{id}", "", 404);
}

TEST_F(OpenApiTest, DocsPageIsSelfContained) {
  const Answer page = get("/docs");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.header("Content-Type"), "text/html; charset=utf-8");
  const std::string policy = page.header("Content-Security-Policy");
  EXPECT_NE(policy.find("default-src 'none'"), std::string::npos) << policy;
  EXPECT_NE(policy.find("script-src 'sha256-"), std::string::npos) << policy;
  EXPECT_EQ(policy.find("unsafe-inline"), std::string::npos);
  EXPECT_NE(page.body.find("\"operationId\":\"listServers\""), std::string::npos);
  for (const char* code : {"version_mismatch", "database_full", "timed_out"}) {
    const std::string anchor = " id=\"" + std::string(code) + "\"";
    EXPECT_NE(page.body.find(anchor), std::string::npos) << code << ": the `type` of problems refers to it";
    EXPECT_EQ(page.body.find(anchor), page.body.rfind(anchor)) << code;
  }
  for (const char* external : {" src=", "@import", "url(", "fetch(", "href=\"http"})
    EXPECT_EQ(page.body.find(external), std::string::npos) << external;
}

}  // namespace
}  // namespace fairlead::admin::test
