// Who may use the admin API, and what they see.
#include "harness.hpp"

namespace fairlead::admin::test {
namespace {

using AccessTest = AdminTest;

TEST_F(AccessTest, WithoutTokenEverythingButHealthIsRejected) {
  for (const char* path : {"/mcp", "/mcp/servers", "/api/v1/mcp/servers", "/users", "/config",
                           "/openapi.json", "/docs", "/health", "/events", "/nothing"}) {
    const Answer answer = get(path, "");
    EXPECT_EQ(answer.status, 401) << path;
    EXPECT_EQ(answer.header("WWW-Authenticate"), "Bearer realm=\"fairlead\"") << path;
    EXPECT_EQ(answer.header("Content-Type"), "application/problem+json") << path;
    EXPECT_EQ(answer.code(), "unauthenticated") << path;
  }
  EXPECT_EQ(get("/.well-known/anything", "").status, 404);
}

TEST_F(AccessTest, OptionsWithoutTokenRevealNothing) {
  const Answer health = request("OPTIONS", "/health", {}, {}, "");
  EXPECT_EQ(health.status, 204);
  EXPECT_TRUE(health.body.empty());
  const Answer known = request("OPTIONS", "/mcp/servers/x/test", {}, {}, "");
  const Answer unknown = request("OPTIONS", "/mcp/nothing", {}, {}, "");
  EXPECT_EQ(known.status, 204);
  EXPECT_EQ(unknown.status, 204);
  EXPECT_EQ(known.header("Allow"), unknown.header("Allow"));
}

TEST_F(AccessTest, ModeNoneOpensMcpButNotTheAdminApi) {
  on_loop([&] { mode_ = AuthMode::none; });
  EXPECT_EQ(get("/health", "").status, 200);
  EXPECT_EQ(get("/openapi.json", "").status, 200);
  for (const char* path : {"/mcp/servers", "/api/v1/config", "/users", "/processes", "/events", "/tools"})
    EXPECT_EQ(get(path, "").status, 401) << path;
  EXPECT_EQ(get("/health", "wrong-token-of-someone").status, 401);
  EXPECT_EQ(get("/mcp/servers").status, 200);
}

TEST_F(AccessTest, MalformedAndUnknownTokensAreRejected) {
  for (const std::string& line :
       {std::string("Authorization: Basic YTpi"), std::string("Authorization: Bearer"),
        std::string("Authorization: Bearer fl_unknown"),
        "Authorization: Bearer " + std::string(kAdminToken) + "x"}) {
    const Answer answer = request("GET", "/users", {}, {line}, "");
    EXPECT_EQ(answer.status, 401) << line;
    EXPECT_EQ(answer.code(), "invalid_token") << line;
  }
  const std::string token(kAdminToken);
  EXPECT_EQ(request("GET", "/users", {}, {"Authorization: Bearer " + token}, token).status, 400);
}

TEST_F(AccessTest, RevocationExpiryAndDisablingTakeEffectAtOnce) {
  const std::string ann = create_user("ann");
  EXPECT_EQ(get("/mcp/servers", ann).status, 200);
  EXPECT_EQ(request("PATCH", "/users/ann", R"({"enabled":false})").status, 200);
  EXPECT_EQ(get("/mcp/servers", ann).code(), "user_disabled");
  EXPECT_EQ(request("PATCH", "/users/ann", R"({"enabled":true})").status, 200);
  EXPECT_EQ(get("/mcp/servers", ann).status, 200);
  const std::string id = *get("/tokens").json()["items"][0]["id"].as_string();
  EXPECT_EQ(request("DELETE", "/tokens/" + id).status, 204);
  EXPECT_EQ(get("/mcp/servers", ann).code(), "token_revoked");
  const Answer brief = post("/tokens", R"({"user":"ann","expires":"200ms"})");
  ASSERT_EQ(brief.status, 201) << brief.body;
  EXPECT_TRUE(fairlead::test::wait_until(
      [&] { return get("/mcp/servers", brief.text("token")).code() == "token_expired"; }));
}

TEST_F(AccessTest, RoleChangesTakeEffectAtOnce) {
  const std::string ann = create_user("ann", "admin");
  EXPECT_EQ(get("/users", ann).status, 200);
  EXPECT_EQ(post("/groups", R"({"name":"g"})", ann).status, 201);
  EXPECT_EQ(request("PATCH", "/users/ann", R"({"role":"user"})").status, 200);
  EXPECT_NE(post("/groups", R"({"name":"g2"})", ann).status, 201);
}

TEST_F(AccessTest, StreamsOfARevokedClientEnd) {
  std::vector<std::string> ended;
  options_.end_sessions = [&](const std::function<bool(const Principal&)>& selected) {
    Principal principal;
    principal.issuer = registry::kRegistryIssuer;
    for (const registry::UserPtr& user : {registry_->state().users.find_by_name("ann")}) {
      principal.user = principal.subject = user ? user->id : "";
      if (user && selected(principal)) ended.push_back(user->name);
    }
  };
  stop();
  start();
  const std::string ann = create_user("ann", "admin");
  RawClient client(address_);
  client.send(request_text("GET", "/events", {}, {}, ann));
  while (client.buffered().find(": open") == std::string::npos && client.receive_more()) continue;
  ASSERT_NE(client.buffered().find("text/event-stream"), std::string::npos) << client.buffered();
  EXPECT_EQ(request("PATCH", "/users/ann", R"({"enabled":false})").status, 200);
  while (client.buffered().find("\r\n0\r\n\r\n") == std::string::npos && client.receive_more()) continue;
  EXPECT_NE(client.buffered().find("\r\n0\r\n\r\n"), std::string::npos);
  EXPECT_EQ(ended, std::vector<std::string>{"ann"});
}

TEST_F(AccessTest, UsersSeeOnlyWhatTheRulesAllow) {
  create("/mcp/servers", server_body("hidden-one").insert(1, R"("visibility":"hidden",)"));
  const std::string seen = create(
      "/mcp/servers",
      R"({"name":"web","transport":"http","config":{"url":"http://127.0.0.1:1/","headers":{"X-Key":"topsecret"}}})");
  const std::string ann = create_user("ann");
  const Answer list = get("/mcp/servers", ann);
  EXPECT_EQ(list.json()["items"].size(), 1u) << list.body;
  EXPECT_EQ(list.body.find("topsecret"), std::string::npos);
  const Answer hidden = get("/mcp/servers/hidden-one", ann);
  const Answer missing = get("/mcp/servers/missing-one", ann);
  EXPECT_EQ(hidden.status, 404);
  EXPECT_EQ(hidden.text("detail"), "there is no server \"hidden-one\"");
  EXPECT_EQ(missing.text("detail"), "there is no server \"missing-one\"");
  EXPECT_NE(get("/mcp/servers/web").body.find("topsecret"), std::string::npos);
  for (const char* operation : {"test", "refresh", "restart", "stop"})
    EXPECT_EQ(request("POST", "/mcp/servers/web/" + std::string(operation), {}, {}, ann).status, 403)
        << operation;
  EXPECT_EQ(request("PATCH", "/mcp/servers/web", R"({"title":"x"})", {}, ann).status, 403);
  EXPECT_EQ(request("DELETE", "/mcp/servers/" + seen, {}, {}, ann).status, 403);
  EXPECT_EQ(get("/mcp/servers/web/logs", ann).status, 403);
}

TEST_F(AccessTest, UsersCannotRegisterPrograms) {
  const std::string ann = create_user("ann");
  const Answer stdio = post("/mcp/servers", server_body("mine"), ann);
  EXPECT_EQ(stdio.status, 403);
  EXPECT_EQ(stdio.code(), "forbidden");
  const Answer http =
      post("/mcp/servers", R"({"name":"mine","transport":"http","config":{"url":"https://example.com/mcp"}})",
           ann);
  EXPECT_EQ(http.status, 201) << http.body;
  EXPECT_EQ(http.text("visibility"), "user");
  EXPECT_EQ(request("PUT", "/config/mcp.max_stdio_processes", R"({"value":2})", {}, ann).status, 403);
  EXPECT_EQ(post("/users", R"({"name":"eve"})", ann).status, 403);
}

TEST_F(AccessTest, ScopesRestrictTokens) {
  const std::string reader = create_user("ann", "admin", R"(["admin:servers:read"])");
  EXPECT_EQ(get("/mcp/servers", reader).status, 200);
  EXPECT_EQ(post("/mcp/servers", server_body("x"), reader).status, 403);
  EXPECT_EQ(get("/users", reader).status, 403);
  const std::string mcp = create_user("bob", "admin", R"(["mcp"])");
  EXPECT_EQ(get("/mcp/servers", mcp).status, 403);
}

TEST_F(AccessTest, TooManyRequestsOfOneClientAreRejected) {
  options_.max_client_requests = 0;
  stop();
  start();
  const Answer answer = get("/users");
  EXPECT_EQ(answer.status, 429);
  EXPECT_NE(answer.body.find("max_client_requests"), std::string::npos);
  EXPECT_FALSE(answer.header("Retry-After").empty());
}

TEST_F(AccessTest, UserMayNotRegisterAProcessWhateverElseIsWrongWithTheBody) {
  const std::string ann = create_user("ann");
  for (const char* body :
       {R"({"transport":"stdio"})", R"({"name":"","transport":"stdio","config":{"command":1}})",
        R"({"name":"a","transport":"stdio","surprise":1})"}) {
    const Answer answer = post("/mcp/servers", body, ann);
    EXPECT_EQ(answer.status, 403) << answer.body;
    EXPECT_EQ(answer.json()["errors"][0]["pointer"].as_string(), "/transport") << answer.body;
  }
  EXPECT_EQ(post("/mcp/servers", R"({"transport":"http"})", ann).status, 422);
  EXPECT_EQ(post("/mcp/servers", R"({"transport":"stdio"})").status, 422);
}

}  // namespace
}  // namespace fairlead::admin::test
