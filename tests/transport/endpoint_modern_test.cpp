// Endpoint: stateless requests of the modern era (JSON or events, statuses, cancellation by disconnect).
#include "transport/endpoint_harness.hpp"

namespace fairlead::transport {
namespace {

using namespace std::chrono_literals;

class ModernEndpointTest : public EndpointTest {};

TEST_F(ModernEndpointTest, ResponseIsJsonUnlessNotificationPrecedesIt) {
  const FakeExchangePtr json = modern("plain");
  EXPECT_EQ(json->status, 200);
  EXPECT_EQ(json->header("Content-Type"), "application/json");
  EXPECT_EQ(json->body, result("7", R"({"ok":true})"));
  const FakeExchangePtr events = modern("talk");
  EXPECT_EQ(events->header("Content-Type"), "text/event-stream");
  EXPECT_EQ(events->header("X-Accel-Buffering"), "no");
  // Each message is on one line. The events have no ids, because streams of the modern era cannot be resumed.
  EXPECT_EQ(events->body,
            event("", R"({"jsonrpc":"2.0","method":"notifications/message","params":{ "a":1}})") +
                event("", result("7", R"({"ok":true})")));
  EXPECT_TRUE(events->finished);
  EXPECT_FALSE(json->headers.has("Mcp-Session-Id"));
  EXPECT_EQ(endpoint->session_count(), 0u);
}

TEST_F(ModernEndpointTest, ResponseHasTheOnlyMediaTypeThatClientAccepts) {
  EXPECT_EQ(modern("talk", "application/json")->body, result("7", R"({"ok":true})"));
  EXPECT_EQ(modern("plain", "text/event-stream")->body, event("", result("7", R"({"ok":true})")));
}

TEST_F(ModernEndpointTest, ErrorResponsesHaveStatusForTheirCode) {
  EXPECT_EQ(modern("gone")->status, 404);
  EXPECT_EQ(modern("capability")->status, 400);
  const FakeExchangePtr thrown = modern("throw");
  EXPECT_EQ(thrown->status, 200);
  EXPECT_EQ(thrown->body, R"({"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Internal error"}})");
}

TEST_F(ModernEndpointTest, DisconnectCancelsRequest) {
  const FakeExchangePtr hang = modern("hang");
  EXPECT_FALSE(hang->responded());
  on_loop([&] { hang->disconnect(); });
  EXPECT_EQ(application->stopped(), 1);
  on_loop([&] { application->release(); });
  EXPECT_FALSE(hang->responded());
}

TEST_F(ModernEndpointTest, RequestTimesOutAfterRequestTimeout) {
  options.request_timeout = 20ms;
  const FakeExchangePtr hang = modern("hang");
  loop.run_until([&] { return hang->finished; });
  EXPECT_NE(hang->body.find("request_timeout (20 ms)"), std::string::npos);
  EXPECT_EQ(application->stopped(), 1);
}

TEST_F(ModernEndpointTest, IdleStreamsReceiveKeepAliveComments) {
  options.keep_alive = 5ms;
  application->notify_first = true;
  const FakeExchangePtr hang = modern("hang");
  ASSERT_TRUE(hang->streaming);
  loop.run_until([&] { return hang->body.find(": keepalive\n\n") != std::string::npos; });
  EXPECT_FALSE(hang->finished);
}

TEST_F(ModernEndpointTest, SlowResponseBecomesEventStream) {
  options.keep_alive = 5ms;
  const FakeExchangePtr json = modern("hang", "application/json");
  const FakeExchangePtr hang = modern("hang");
  loop.run_until([&] { return hang->responded(); });
  EXPECT_TRUE(hang->body.starts_with(": keepalive\n\n"));
  EXPECT_FALSE(json->responded());
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

TEST_F(ModernEndpointTest, RefusalEchoesId) {
  http::Headers headers{{"Content-Type", "application/json"}, {"MCP-Protocol-Version", "2026-07-28"}};
  const FakeExchangePtr refused = send("POST", headers, request("\"abc\"", "tools/list"));
  EXPECT_EQ(refused->status, 400);
  EXPECT_TRUE(refused->body.starts_with(R"({"jsonrpc":"2.0","id":"abc","error":{"code":-32602)"));
  EXPECT_TRUE(application->users.empty());
}

TEST_F(ModernEndpointTest, PrincipalIsPassedToApplication) {
  modern("plain");
  EXPECT_EQ(application->users, std::vector<std::string>{""});
}

}  // namespace
}  // namespace fairlead::transport
