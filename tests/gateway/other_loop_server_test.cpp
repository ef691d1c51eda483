// Servers whose connection runs on another loop, in another thread.
#include "gateway/harness.hpp"
#include "support/background_loop.hpp"

namespace fairlead::gateway {
namespace {

class OtherLoopServerTest : public GatewayTest {
 protected:
  test::BackgroundLoop other;

  // Adds a server that runs on the other loop, with its mcp::Client. The gateway and its clients run on this
  // loop.
  void add_on_other_loop(Sharing sharing, mcp::Revision revision) {
    add("other", sharing, revision);
    config.openers["other"] =
        pool::opener_on_loop(other.loop, pool::client_opener(config.connectors["other"]));
  }
  void TearDown() override {
    GatewayTest::TearDown();
    gateway.reset();
    other.run([this] { servers["other"]->clear(); });
  }
  void serve_all(mcp::Revision client_revision) {
    const auto client = connect_client(client_revision, "", "model");
    EXPECT_TRUE(has_tool(client, "other__which"));
    EXPECT_FALSE(call(client, "other__which").starts_with("<")) << call(client, "other__which");
    const std::uint64_t number = subscribe(client);
    EXPECT_EQ(call(client, "other__touch"), "touched");
    EXPECT_TRUE(wait_until([&] { return client->count(kUpdated) == 1; }));
    EXPECT_TRUE(loop.block_on(client->client->unsubscribe(number)));
    EXPECT_EQ(call(client, "other__ask"), "model");
    EXPECT_EQ(call(client, "other__say"), "said");
    EXPECT_TRUE(wait_until([&] { return client->count("notifications/message said") == 1; }));
    EXPECT_EQ(call(client, "other__grow"), "grown");
    const Clock::time_point latest = Clock::now() + 20s;
    while (!has_tool(client, "other__grown") && Clock::now() < latest) flush_messages("other");
    EXPECT_TRUE(has_tool(client, "other__grown"));
  }
};

TEST_F(OtherLoopServerTest, ListCallSubscribeAndServerRequestWorkWithLegacyServer) {
  add_on_other_loop(Sharing::automatic, mcp::kNewestLegacyRevision);
  serve_all(mcp::kNewestLegacyRevision);
}

TEST_F(OtherLoopServerTest, ListCallSubscribeAndServerRequestWorkWithModernServer) {
  add_on_other_loop(Sharing::shared, mcp::Revision::r2026_07_28);
  serve_all(mcp::Revision::r2026_07_28);
}

TEST_F(OtherLoopServerTest, CallIsCancelledAtServerWhenClientCancels) {
  add_on_other_loop(Sharing::shared, mcp::kNewestLegacyRevision);
  const auto client = connect_client();
  EXPECT_TRUE(has_tool(client, "other__wait"));
  std::stop_source stop;
  mcp::ClientCallOptions options;
  options.stop = stop.get_token();
  bool over = false;
  loop.spawn(call_until_failure(client->client, "other__wait", options, &over));
  const auto state = [&](bool Instance::*flag) {
    bool value = false;
    other.run([&] {
      for (const auto& one : *servers["other"]) value = value || (*one).*flag;
    });
    return value;
  };
  EXPECT_TRUE(wait_until([&] { return state(&Instance::waiting); }));
  stop.request_stop();
  EXPECT_TRUE(wait_until([&] { return over && state(&Instance::cancelled); }));
}

}  // namespace
}  // namespace fairlead::gateway
