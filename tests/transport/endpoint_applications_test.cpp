// Endpoint with several applications: sessions belong to one of them.
#include "transport/endpoint_harness.hpp"

namespace fairlead::transport {
namespace {

class EndpointApplicationsTest : public EndpointTest {
 protected:
  std::shared_ptr<TestApplication> other = std::make_shared<TestApplication>(loop);

  void TearDown() override {
    other->release();
    EndpointTest::TearDown();
  }
  FakeExchangePtr send_to(const std::shared_ptr<Application>& target, const std::string& method,
                          const std::string& body = {}) {
    http::Request sent;
    sent.method = method;
    sent.target = "/mcp";
    sent.headers = headers(method == "GET" ? "text/event-stream" : "application/json, text/event-stream");
    sent.principal = principal;
    sent.body = Bytes::copy_of(body);
    auto exchange = std::make_shared<FakeExchange>(loop, std::move(sent));
    on_loop([&] { endpoint->serve(exchange, target); });
    return exchange;
  }
  static PrincipalPtr user(const std::string& name, std::vector<std::string> roles = {}) {
    auto made = std::make_shared<Principal>();
    made->user = name;
    made->roles = std::move(roles);
    return made;
  }
};

TEST_F(EndpointApplicationsTest, SessionIsUnknownToOtherApplications) {
  initialize("2025-11-25");
  EXPECT_EQ(send_to(other, "POST", request("1", "echo"))->status, 404);
  EXPECT_EQ(send_to(other, "GET")->status, 404);
  EXPECT_EQ(send_to(other, "DELETE")->status, 404);
  EXPECT_TRUE(other->users.empty());
  EXPECT_EQ(send_to(application, "POST", request("1", "echo"))->status, 200);
}

TEST_F(EndpointApplicationsTest, SessionKeepsItsApplicationAlive) {
  endpoint = Endpoint::create(loop, nullptr, options);
  const std::string hello = request("0", "initialize", R"({"protocolVersion":"2025-11-25"})");
  const std::weak_ptr<TestApplication> weak = other;
  const FakeExchangePtr opened = send_to(other, "POST", hello);
  session = opened->header("Mcp-Session-Id");
  auto kept = std::exchange(other, std::make_shared<TestApplication>(loop));
  application->peers = std::exchange(kept->peers, {});
  kept = nullptr;
  ASSERT_FALSE(weak.expired());
  EXPECT_EQ(send_to(weak.lock(), "DELETE")->status, 200);
  EXPECT_TRUE(weak.expired());
}

TEST_F(EndpointApplicationsTest, SessionEndsWhenRolesOfItsPrincipalChange) {
  principal = user("u", {"admin"});
  initialize("2025-11-25");
  principal = user("u");
  EXPECT_EQ(call("1", "echo")->status, 404);
  EXPECT_EQ(endpoint->session_count(), 0u);
}

TEST_F(EndpointApplicationsTest, EndSessionsEndsSelectedSessionsWithTheirStreams) {
  principal = user("one");
  initialize("2025-11-25");
  const FakeExchangePtr stream = get();
  const std::string first = session;
  principal = user("two");
  initialize("2025-11-25");
  ASSERT_EQ(endpoint->session_count(), 2u);
  on_loop([&] {
    endpoint->end_sessions([&](const Application& of, const Principal& client_principal) {
      return &of == application.get() && client_principal.user == "one";
    });
  });
  EXPECT_TRUE(stream->finished);
  EXPECT_EQ(endpoint->session_count(), 1u);
  EXPECT_EQ(call("1", "echo")->status, 200);
  principal = user("one");
  session = first;
  EXPECT_EQ(call("2", "echo")->status, 404);
}

TEST_F(EndpointApplicationsTest, AllApplicationsAreDrained) {
  initialize("2025-11-25");
  send_to(other, "POST", request("0", "initialize", R"({"protocolVersion":"2025-11-25"})"));
  session.clear();
  send_to(other, "POST", request("0", "initialize", R"({"protocolVersion":"2025-11-25"})"));
  loop.block_on(endpoint->drain(std::chrono::milliseconds(0)));
  EXPECT_TRUE(application->drained);
  EXPECT_TRUE(other->drained);
}

}  // namespace
}  // namespace fairlead::transport
