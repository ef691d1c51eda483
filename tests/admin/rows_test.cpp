// Lists, reads and changes of rows over HTTP.
#include "harness.hpp"

namespace fairlead::admin::test {
namespace {

using RowsTest = AdminTest;

TEST_F(RowsTest, BodyOfTheContractRegistersAServer) {
  const Answer created = post("/mcp/servers", server_body("files"));
  ASSERT_EQ(created.status, 201) << created.body;
  EXPECT_EQ(created.header("Location"), "/api/v1/mcp/servers/" + created.text("id"));
  EXPECT_EQ(created.header("ETag"), "\"1\"");
  EXPECT_EQ(created.text("name"), "files");
  EXPECT_EQ(created.text("visibility"), "visible");
  for (const std::string& path : {created.header("Location"), std::string("/mcp/servers/files"),
                                  "/mcp/servers/" + created.text("id") + "/"}) {
    const Answer read = get(path);
    EXPECT_EQ(read.status, 200) << path;
    EXPECT_EQ(read.body, created.body) << path;
    EXPECT_EQ(read.header("ETag"), "\"1\"");
  }
}

TEST_F(RowsTest, HttpServersAreAccepted) {
  const Answer created = post("/mcp/servers",
                              R"({"name":"web","transport":"http","config":{"transport":"http",
                                 "url":"http://127.0.0.1:1/mcp","headers":{"X-Key":"secret"}}})");
  EXPECT_EQ(created.status, 201) << created.body;
  EXPECT_EQ(created.text("transport"), "http");
}

struct BadRow {
  std::string body;
  int status;
  std::string code;
  std::string pointer;
};

TEST_F(RowsTest, BadBodiesAreRejectedWithThePointer) {
  create("/mcp/servers", server_body("taken"));
  const std::vector<BadRow> bodies = {
      {"{", 400, "malformed_json", ""},
      {"{\"name\":\"\xff\"}", 400, "malformed_json", ""},
      {"[]", 422, "invalid_row", ""},
      {R"({"name":"a","config":{"command":"x"},"colour":"red"})", 422, "invalid_row", "/colour"},
      {R"({"name":3,"config":{"command":"x"}})", 422, "invalid_row", "/name"},
      {R"({"name":"a b","transport":"stdio","config":{"command":"x"}})", 422, "invalid_row", "/name"},
      {R"({"name":"a","transport":"stdio","config":{"command":"x","args":"y"}})", 422, "invalid_row",
       "/config/args"},
      {server_body("taken"), 409, "name_taken", "/name"},
      {R"({"name":"a'; DROP TABLE servers; --","transport":"stdio","config":{"command":"x"}})", 422,
       "invalid_row", "/name"},
  };
  for (const BadRow& bad : bodies) {
    const Answer answer = post("/mcp/servers", bad.body);
    EXPECT_EQ(answer.status, bad.status) << bad.body << " " << answer.body;
    EXPECT_EQ(answer.code(), bad.code) << bad.body;
    EXPECT_EQ(answer.header("Content-Type"), "application/problem+json");
    if (!bad.pointer.empty()) {
      EXPECT_EQ(answer.json()["errors"][0]["pointer"].as_string(), bad.pointer) << answer.body;
    }
  }
}

TEST_F(RowsTest, LargeBodiesAndOtherMediaTypesAreRejected) {
  const auto body = [](std::size_t bytes) { return "{\"name\":\"" + std::string(bytes, 'x') + "\"}"; };
  const Answer large = post("/mcp/servers", body(3u << 19));
  EXPECT_EQ(large.status, 422);
  EXPECT_EQ(large.json()["errors"][0]["pointer"].as_string(), "/name");
  const Answer larger = post("/mcp/servers", body(3u << 20));
  EXPECT_EQ(larger.status, 413);
  EXPECT_NE(larger.body.find("max_admin_body_bytes"), std::string::npos);
  const Answer largest = post("/mcp/servers", body(5u << 20));
  EXPECT_EQ(largest.status, 413);
  EXPECT_EQ(largest.code(), "body_too_large");
  EXPECT_EQ(largest.header("Content-Type"), "application/problem+json");
  EXPECT_EQ(post("/mcp", body(5u << 20)).header("Content-Type"), "application/json");
  const Answer text = request("POST", "/mcp/servers", "{}", {"Content-Type: text/plain"});
  EXPECT_EQ(text.status, 415);
  EXPECT_EQ(text.code(), "unsupported_media_type");
}

TEST_F(RowsTest, PatchFollowsRfc7396AndRaisesTheVersion) {
  const std::string id = create("/mcp/servers", server_body("files"));
  const Answer patched = request("PATCH", "/mcp/servers/" + id, R"({"description":null,"tags":["a"]})",
                                 {"Content-Type: application/merge-patch+json"});
  ASSERT_EQ(patched.status, 200) << patched.body;
  EXPECT_EQ(patched.header("ETag"), "\"2\"");
  EXPECT_TRUE(patched.text("description").empty());
  EXPECT_EQ(patched.json()["tags"][0].as_string(), "a");
  const Answer wrong = request("PATCH", "/mcp/servers/" + id, R"({"enabled":"no"})");
  EXPECT_EQ(wrong.status, 422);
  EXPECT_EQ(wrong.json()["errors"][0]["pointer"].as_string(), "/enabled");
}

TEST_F(RowsTest, ConditionsAreEvaluated) {
  const std::string path = "/mcp/servers/" + create("/mcp/servers", server_body("files"));
  EXPECT_EQ(request("GET", path, {}, {"If-None-Match: \"1\""}).status, 304);
  EXPECT_EQ(request("GET", path, {}, {"If-None-Match: \"2\""}).status, 200);
  EXPECT_EQ(request("PATCH", path, R"({"title":"x"})", {"If-Match: \"1\""}).status, 200);
  const Answer stale = request("PATCH", path, R"({"title":"y"})", {"If-Match: \"1\""});
  EXPECT_EQ(stale.status, 412);
  EXPECT_EQ(stale.code(), "version_mismatch");
  EXPECT_EQ(request("DELETE", path, {}, {"If-Match: \"1\""}).status, 412);
  EXPECT_EQ(request("DELETE", path, {}, {"If-Match: 2"}).status, 400);
  EXPECT_EQ(request("DELETE", path, {}, {"If-Match: \"2\""}).status, 204);
  EXPECT_EQ(get(path).status, 404);
}

TEST_F(RowsTest, MethodsAndPathsAreChecked) {
  const Answer put = request("PUT", "/mcp/servers", "{}");
  EXPECT_EQ(put.status, 405);
  EXPECT_EQ(put.header("Allow"), "GET, POST, HEAD, OPTIONS");
  EXPECT_EQ(request("OPTIONS", "/mcp/servers", {}, {}, "").status, 204);
  EXPECT_EQ(get("/mcp/servers/a/b/c").status, 404);
  EXPECT_EQ(get("/api/v1/nothing").code(), "not_found");
  const Answer head = request("HEAD", "/mcp/servers");
  EXPECT_EQ(head.status, 200);
  EXPECT_TRUE(head.body.empty());
  const Answer unknown = get("/mcp/servers?colour=red");
  EXPECT_EQ(unknown.status, 400);
  EXPECT_EQ(unknown.code(), "invalid_parameter");
  EXPECT_EQ(get("/mcp/servers?limit=0").status, 400);
}

TEST_F(RowsTest, PagesContainEachRowOnceAlthoughRowsAreAddedAndRemoved) {
  std::vector<std::string> ids;
  for (int i = 0; i < 7; ++i) ids.push_back(create("/users", R"({"name":"u)" + std::to_string(i) + "\"}"));
  const Answer first = get("/users?limit=3");
  EXPECT_EQ(first.json()["items"].size(), 3u);
  EXPECT_EQ(request("DELETE", "/users/" + ids[2]).status, 204);  // the last row of the first page
  EXPECT_EQ(request("DELETE", "/users/" + ids[4]).status, 204);
  const std::string added = create("/users", R"({"name":"late"})");
  std::vector<std::string> seen;
  std::string cursor = first.text("nextCursor");
  while (!cursor.empty()) {
    const Answer page = get("/users?limit=3&cursor=" + cursor);
    ASSERT_EQ(page.status, 200) << page.body;
    page.json()["items"].each_element([&](json::View item) {
      seen.push_back(*item["id"].as_string());
      return true;
    });
    cursor = page.text("nextCursor");
  }
  EXPECT_EQ(seen, (std::vector<std::string>{ids[3], ids[5], ids[6], added}));
  EXPECT_EQ(get("/groups?cursor=" + first.text("nextCursor")).code(), "invalid_cursor");
}

TEST_F(RowsTest, FiltersSelectRows) {
  create(
      "/mcp/servers",
      R"({"name":"a","tags":["x"],"domain":"d1","transport":"http","config":{"url":"http://127.0.0.1:1/"},"enabled":false})");
  create(
      "/mcp/servers",
      R"({"name":"ab","visibility":"hidden","domain":"d2","transport":"http","config":{"url":"http://127.0.0.1:1/"},"enabled":false})");
  const std::map<std::string, std::size_t> expected = {
      {"tag=x", 1},        {"tag=y", 0},  {"domain=d2", 1}, {"visibility=hidden", 1}, {"enabled=false", 2},
      {"enabled=true", 0}, {"name=a", 1}, {"name=a*", 2},   {"name=*b", 1},           {"name=c", 0}};
  for (const auto& [filter, count] : expected)
    EXPECT_EQ(get("/mcp/servers?" + filter).json()["items"].size(), count) << filter;
  EXPECT_EQ(get("/mcp/servers?enabled=maybe").status, 400);
  EXPECT_EQ(get("/mcp/servers?visibility=secret").status, 400);
}

TEST_F(RowsTest, RepeatedRequestWithIdempotencyKeyGetsTheStoredResponse) {
  const std::vector<std::string> key = {"Idempotency-Key: k-1"};
  const Answer first = request("POST", "/users", R"({"name":"ann"})", key);
  ASSERT_EQ(first.status, 201) << first.body;
  EXPECT_EQ(first.header("Idempotency-Replayed"), "");
  const Answer again = request("POST", "/api/v1/users", R"({"name":"ann"})", key);
  EXPECT_EQ(again.status, 201);
  EXPECT_EQ(again.header("Idempotency-Replayed"), "true");
  EXPECT_EQ(again.body, first.body);
  EXPECT_EQ(again.header("Location"), first.header("Location"));
  EXPECT_EQ(again.header("ETag"), first.header("ETag"));
  const Answer other = request("POST", "/users", R"({"name":"bob"})", key);
  EXPECT_EQ(other.status, 422);
  EXPECT_EQ(other.code(), "idempotency_key_reused");
  EXPECT_EQ(request("POST", "/users", R"({"name":"bob"})", {"Idempotency-Key: a b"}).code(),
            "invalid_header");
  EXPECT_EQ(get("/users").json()["items"].size(), 1u);
}

TEST_F(RowsTest, ConcurrentRequestsWithOneIdempotencyKeyCreateOneRow) {
  const std::string text =
      request_text("POST", "/users", R"({"name":"ann"})", {"Idempotency-Key: k"}, kAdminToken);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(std::make_unique<RawClient>(address_));
  for (const auto& client : clients) client->send(text);
  std::map<int, int> statuses;
  for (const auto& client : clients) ++statuses[client->read_response().status];
  EXPECT_EQ(statuses[201] + statuses[409], 8);
  EXPECT_GE(statuses[201], 1);
  EXPECT_EQ(get("/users").json()["items"].size(), 1u);
}

TEST_F(RowsTest, TokensAreShownOnceAndNeverStoredInAResponse) {
  const std::string user = create("/users", R"({"name":"ann"})");
  const std::string body = R"({"user":"ann","name":"ci","scopes":["mcp"]})";
  const Answer created = request("POST", "/tokens", body, {"Idempotency-Key: t"});
  ASSERT_EQ(created.status, 201) << created.body;
  EXPECT_EQ(created.text("user"), user);
  const std::string token = created.text("token");
  EXPECT_TRUE(token.starts_with("fl_"));
  const Answer again = request("POST", "/tokens", body, {"Idempotency-Key: t"});
  EXPECT_EQ(again.status, 201);
  EXPECT_EQ(again.text("id"), created.text("id"));
  EXPECT_EQ(again.body.find(token), std::string::npos);
  const Answer read = get(created.header("Location"));
  EXPECT_EQ(read.status, 200);
  EXPECT_EQ(read.body.find(token), std::string::npos);
  EXPECT_EQ(get("/tokens?user=" + user).json()["items"].size(), 1u);
  EXPECT_EQ(request("DELETE", created.header("Location")).status, 204);
  EXPECT_FALSE(json::View(get(created.header("Location")).body)["revokedAt"].absent());
}

TEST_F(RowsTest, ConfigurationIsReadSetAndReset) {
  const std::string path = "/config/mcp.max_stdio_processes";
  EXPECT_EQ(get(path).json()["value"].as_int(), 50);
  const Answer set = request("PUT", path, R"({"value":2})");
  ASSERT_EQ(set.status, 200) << set.body;
  EXPECT_EQ(set.json()["value"].as_int(), 2);
  EXPECT_EQ(set.json()["isDefault"].as_bool(), false);
  EXPECT_EQ(get("/api/v1" + path).json()["value"].as_int(), 2);
  const std::vector<std::string> wrong = {R"({"value":0})", R"({"value":"x"})", "{}",
                                          R"({"value":1,"unit":"s"})"};
  for (const std::string& body : wrong) EXPECT_EQ(request("PUT", path, body).status, 422) << body;
  EXPECT_EQ(request("DELETE", path).status, 204);
  EXPECT_EQ(get(path).json()["value"].as_int(), 50);
  const Answer unknown = get("/config/mcp.max_stdio_proceses");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_NE(unknown.body.find("mcp.max_stdio_processes"), std::string::npos) << "no suggestion";
  EXPECT_GT(get("/config?category=mcp&limit=500").json()["items"].size(), 3u);
}

TEST_F(RowsTest, GroupsAndEndpointsAreManaged) {
  const std::string user = create("/users", R"({"name":"ann"})");
  const std::string group = create("/groups", R"({"name":"team","members":[")" + user + "\"]}");
  EXPECT_EQ(get("/groups/team").json()["members"][0].as_string(), user);
  const std::string endpoint =
      create("/endpoints", R"({"name":"dev","tags":["dev"],"groups":[")" + group + "\"]}");
  EXPECT_EQ(request("PATCH", "/endpoints/dev", R"({"mode":"discover"})").text("mode"), "discover");
  EXPECT_EQ(request("DELETE", "/endpoints/" + endpoint).status, 204);
  EXPECT_EQ(get("/endpoints/discover").status, 200);
}

}  // namespace
}  // namespace fairlead::admin::test
