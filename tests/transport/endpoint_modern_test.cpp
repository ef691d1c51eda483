// Stateless requests: JSON or events, statuses, leaving is cancelling.
#include "transport/endpoint_harness.hpp"

namespace fairlead::transport {
namespace {

using namespace std::chrono_literals;

class ModernEndpointTest : public EndpointTest {};

TEST_F(ModernEndpointTest, AnAnswerIsJsonUnlessSomethingIsSaidAheadOfIt) {
  const FakePtr json = modern("plain");
  EXPECT_EQ(json->status, 200);
  EXPECT_EQ(json->header("Content-Type"), "application/json");
  EXPECT_EQ(json->body, result("7", R"({"ok":true})"));
  const FakePtr events = modern("talk");
  EXPECT_EQ(events->header("Content-Type"), "text/event-stream");
  EXPECT_EQ(events->header("X-Accel-Buffering"), "no");
  // On one line, and without ids: there is no coming back.
  EXPECT_EQ(events->body,
            event("", R"({"jsonrpc":"2.0","method":"notifications/message","params":{ "a":1}})") +
                event("", result("7", R"({"ok":true})")));
  EXPECT_TRUE(events->finished);
  EXPECT_FALSE(json->headers.has("Mcp-Session-Id"));
  EXPECT_EQ(endpoint->sessions(), 0u);
}

TEST_F(ModernEndpointTest, ClientsThatTakeOneKindOnlyGetThatKind) {
  EXPECT_EQ(modern("talk", "application/json")->body, result("7", R"({"ok":true})"));
  EXPECT_EQ(modern("plain", "text/event-stream")->body, event("", result("7", R"({"ok":true})")));
}

TEST_F(ModernEndpointTest, ErrorsHaveTheStatusOfTheirCode) {
  EXPECT_EQ(modern("gone")->status, 404);
  EXPECT_EQ(modern("capability")->status, 400);
  const FakePtr thrown = modern("throw");
  EXPECT_EQ(thrown->status, 200);
  EXPECT_EQ(thrown->body, R"({"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Internal error"}})");
}

TEST_F(ModernEndpointTest, LeavingIsCancelling) {
  const FakePtr hang = modern("hang");
  EXPECT_FALSE(hang->answered());
  on_loop([&] { hang->leave(); });
  EXPECT_EQ(application->stopped(), 1);
  on_loop([&] { application->release(); });
  EXPECT_FALSE(hang->answered());
}

TEST_F(ModernEndpointTest, RequestsThatTakeTooLongAreGivenUp) {
  options.request_timeout = 20ms;
  const FakePtr hang = modern("hang");
  loop.run_until([&] { return hang->finished; });
  EXPECT_NE(hang->body.find("request_timeout (20 ms)"), std::string::npos);
  EXPECT_EQ(application->stopped(), 1);
}

TEST_F(ModernEndpointTest, QuietStreamsAreKeptAlive) {
  options.keep_alive = 5ms;
  application->talk_first = true;
  const FakePtr hang = modern("hang");
  ASSERT_TRUE(hang->streaming);
  loop.run_until([&] { return hang->body.find(": keepalive\n\n") != std::string::npos; });
  EXPECT_FALSE(hang->finished);
}

TEST_F(ModernEndpointTest, AnAnswerThatTakesLongBecomesAStream) {
  options.keep_alive = 5ms;
  const FakePtr json = modern("hang", "application/json");
  const FakePtr hang = modern("hang");
  loop.run_until([&] { return hang->answered(); });
  EXPECT_TRUE(hang->body.starts_with(": keepalive\n\n"));
  EXPECT_FALSE(json->answered());
  on_loop([&] { application->release(); });
  EXPECT_TRUE(hang->body.ends_with(event("", result("7", R"({"ok":true})"))));
  EXPECT_EQ(json->body, result("7", R"({"ok":true})"));
}

TEST_F(ModernEndpointTest, NotificationsAreAccepted) {
  http::Headers headers{{"Content-Type", "application/json"}, {"MCP-Protocol-Version", "2026-07-28"}};
  EXPECT_EQ(send("POST", headers, R"({"jsonrpc":"2.0","method":"notifications/cancelled"})")->status, 202);
  headers.set("Content-Type", "text/plain");
  EXPECT_EQ(send("POST", headers, R"({"jsonrpc":"2.0","method":"notifications/cancelled"})")->status, 415);
}

TEST_F(ModernEndpointTest, RefusalsEchoTheId) {
  http::Headers headers{{"Content-Type", "application/json"}, {"MCP-Protocol-Version", "2026-07-28"}};
  const FakePtr refused = send("POST", headers, request("\"abc\"", "tools/list"));
  EXPECT_EQ(refused->status, 400);
  EXPECT_TRUE(refused->body.starts_with(R"({"jsonrpc":"2.0","id":"abc","error":{"code":-32602)"));
  EXPECT_TRUE(application->users.empty());
}

TEST_F(ModernEndpointTest, WhoAsksIsKnownToTheApplication) {
  modern("plain");
  EXPECT_EQ(application->users, std::vector<std::string>{""});
}

}  // namespace
}  // namespace fairlead::transport
