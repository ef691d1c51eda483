// Event streams of the admin API, and what events keep.
#include "admin/harness.hpp"

namespace fairlead::admin::test {
namespace {

class StreamsTest : public AdminTest {
 protected:
  StreamsTest() { options_.max_client_event_streams = 1; }

  // Opens a stream of events. It stays open as long as the client.
  std::unique_ptr<RawClient> open_stream(const std::string& token) {
    auto client = std::make_unique<RawClient>(address_);
    client->send(request_text("GET", "/events", {}, {}, token));
    while (client->buffered().find("\r\n\r\n") == std::string::npos && client->receive_more()) continue;
    return client;
  }
  static bool is_open(RawClient& client) { return client.buffered().starts_with("HTTP/1.1 200"); }
};

TEST_F(StreamsTest, ClientDoesNotUseUpTheStreamsOfOthers) {
  const std::string token = create_user("ann");
  const auto first = open_stream(token);
  EXPECT_TRUE(is_open(*first));
  const Answer second = get("/events", token);
  EXPECT_EQ(second.status, 429);
  EXPECT_NE(second.body.find("max_client_event_streams (1)"), std::string::npos) << second.body;
  EXPECT_TRUE(is_open(*open_stream(std::string(kAdminToken))));
}

TEST_F(StreamsTest, HeadOfAStreamEndsAndLeavesTheConnectionUsable) {
  const std::string id = create("/mcp/servers", server_body("toy"));
  RawClient client(address_);
  for (const std::string& path : {std::string("/events"), "/mcp/servers/" + id + "/logs"}) {
    client.send(request_text("HEAD", path, {}, {"Accept: text/event-stream"}, kAdminToken));
    const RawClient::Response head = client.read_response(true);
    EXPECT_EQ(head.status, 200) << path;
    EXPECT_NE(head.head.find("text/event-stream"), std::string::npos) << head.head;
    client.send(request_text("GET", "/users", {}, {}, kAdminToken));
    EXPECT_EQ(client.read_response().status, 200) << path;
  }
  EXPECT_TRUE(is_open(*open_stream(std::string(kAdminToken))));
}

TEST_F(StreamsTest, EventsDoNotKeepRows) {
  const std::string id = create("/mcp/servers", server_body("toy"));
  const auto before =
      on_loop([&] { return std::weak_ptr<const registry::Server>(registry_->state().servers.find(id)); });
  EXPECT_EQ(request("PATCH", "/mcp/servers/" + id, R"({"enabled":false})").status, 200);
  EXPECT_TRUE(fairlead::test::wait_until([&] { return on_loop([&] { return before.expired(); }); }));
}

}  // namespace
}  // namespace fairlead::admin::test
