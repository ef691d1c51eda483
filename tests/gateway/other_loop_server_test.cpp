// Servers that live on another loop, in another thread, behind the gateway.
#include "gateway/harness.hpp"
#include "support/other_loop.hpp"

namespace fairlead::gateway {
namespace {

class OtherLoopServerTest : public GatewayTest {
 protected:
  test::OtherLoop other;

  // The server and its mcp::Client live on the other loop, the gateway and its clients on this one.
  void add_far(Sharing sharing, mcp::Revision revision) {
    add("far", sharing, revision);
    config.openers["far"] = pool::on_loop(other.loop, pool::open_client(config.connectors["far"]));
  }
  void TearDown() override {
    GatewayTest::TearDown();
    gateway.reset();
    other.run([this] { servers["far"]->clear(); });
  }
  void serve_all(mcp::Revision client_revision) {
    const auto client = enter(client_revision, "", "model");
    EXPECT_TRUE(has(client, "far__which"));
    EXPECT_FALSE(call(client, "far__which").starts_with("<")) << call(client, "far__which");
    const std::uint64_t number = subscribe(client);
    EXPECT_EQ(call(client, "far__touch"), "touched");
    EXPECT_TRUE(comes_true([&] { return client->count(kUpdated) == 1; }));
    EXPECT_TRUE(loop.block_on(client->client->unlisten(number)));
    EXPECT_EQ(call(client, "far__ask"), "model");
    EXPECT_EQ(call(client, "far__say"), "said");
    EXPECT_TRUE(comes_true([&] { return client->count("notifications/message said") == 1; }));
    EXPECT_EQ(call(client, "far__grow"), "grown");
    const Clock::time_point latest = Clock::now() + 20s;
    while (!has(client, "far__grown") && Clock::now() < latest) settle("far");
    EXPECT_TRUE(has(client, "far__grown"));
  }
};

TEST_F(OtherLoopServerTest, LegacyServerIsListedCalledSubscribedToAndMayAsk) {
  add_far(Sharing::automatic, mcp::kNewestLegacy);
  serve_all(mcp::kNewestLegacy);
}

TEST_F(OtherLoopServerTest, ModernServerIsListedCalledSubscribedToAndMayAsk) {
  add_far(Sharing::shared, mcp::Revision::r2026_07_28);
  serve_all(mcp::Revision::r2026_07_28);
}

TEST_F(OtherLoopServerTest, CallIsCancelledThereWhenTheClientGivesUp) {
  add_far(Sharing::shared, mcp::kNewestLegacy);
  const auto client = enter();
  EXPECT_TRUE(has(client, "far__wait"));
  std::stop_source stop;
  mcp::ToolCallOptions options;
  options.stop = stop.get_token();
  bool over = false;
  loop.spawn(wait_for(client->client, "far__wait", options, &over));
  const auto state = [&](bool Instance::*flag) {
    bool value = false;
    other.run([&] {
      for (const auto& one : *servers["far"]) value = value || (*one).*flag;
    });
    return value;
  };
  EXPECT_TRUE(comes_true([&] { return state(&Instance::waiting); }));
  stop.request_stop();
  EXPECT_TRUE(comes_true([&] { return over && state(&Instance::cancelled); }));
}

}  // namespace
}  // namespace fairlead::gateway
