// Servers are told what the connected clients can be asked for, and nothing else.
#include "gateway/harness.hpp"

namespace fairlead::gateway {
namespace {

Task<void> ask_for_roots(std::shared_ptr<Peer> peer, bool* answered) {
  CallOptions options;
  const Result<json::Raw> answer = co_await peer->call("roots/list", json::Raw(), std::move(options));
  static_cast<void>(answer);
  *answered = true;
}
Task<Answer> answer_roots(Request) {
  co_return raw(R"({"roots":[]})");
}

class CapabilitiesTest : public GatewayTest {
 protected:
  CapabilitiesTest() {
    furnish = [](Instance& instance) {
      mcp::tool(instance.server, "told", "", [](mcp::Context context, const Nothing&) {
        return std::string(context.client_capabilities().text());
      });
    };
  }
  static constexpr const char* kSampling = R"({"sampling":{}})";
};

TEST_F(CapabilitiesTest, ServerIsToldOfNoneWhenNoClientHasAny) {
  add("a", Sharing::automatic);
  const auto one = enter();
  EXPECT_EQ(call(one, "a__told"), "{}");
  EXPECT_EQ(call(one, "a__which"), "0");
}

TEST_F(CapabilitiesTest, ServerThatNoClientUsedYetIsStartedAnewWithTheUnionOfWhatClientsHave) {
  add("a", Sharing::automatic);
  held["a"];
  const auto plain = enter();
  held["a"].set();
  EXPECT_TRUE(has(plain, "a__told"));
  const auto sampling = enter(mcp::kNewestLegacy, "", "someone");
  answers = answer_roots;
  const auto all = enter();
  EXPECT_EQ(call(plain, "a__told"), R"({"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}})");
  EXPECT_EQ(call(plain, "a__which"), "1") << "started once for its lists, and once for its clients";
}

TEST_F(CapabilitiesTest, ServerThatHasServedACallKeepsWhatItWasTold) {
  add("a", Sharing::automatic);
  const auto plain = enter();
  EXPECT_EQ(call(plain, "a__told"), "{}");
  const auto sampling = enter(mcp::kNewestLegacy, "", "someone");
  EXPECT_EQ(call(sampling, "a__told"), "{}");
  EXPECT_EQ(call(sampling, "a__which"), "0") << "what it keeps of its calls is not lost";
}

TEST_F(CapabilitiesTest, ServerThatLacksNothingIsNotStartedAnew) {
  add("a", Sharing::automatic);
  held["a"];
  const auto one = enter(mcp::kNewestLegacy, "", "someone");
  const auto other = enter(mcp::kNewestLegacy, "", "another");
  ASSERT_TRUE(gateway->update_server(config.servers.front()));
  held["a"].set();
  EXPECT_EQ(call(one, "a__told"), kSampling);
  const std::string number = call(one, "a__which");
  leave(other);
  EXPECT_EQ(call(one, "a__which"), number);
}

TEST_F(CapabilitiesTest, ServerOfOneSessionIsToldOfThatSessionsClientOnly) {
  add("a", Sharing::per_session);
  const auto plain = enter();
  const auto sampling = enter(mcp::kNewestLegacy, "", "someone");
  EXPECT_EQ(call(plain, "a__told"), "{}");
  EXPECT_EQ(call(sampling, "a__told"), kSampling);
}

TEST_F(CapabilitiesTest, AskingForRootsBetweenCallsIsNoEvidenceAgainstSharing) {
  answers = answer_roots;
  add("a", Sharing::automatic);
  const auto one = enter();
  const std::size_t number = std::stoul(call(one, "a__which"));
  bool answered = false;
  loop.spawn(ask_for_roots(instance("a", number).peer, &answered));
  ASSERT_TRUE(comes_true([&] { return answered; }));
  settle("a");
  EXPECT_EQ(gateway->pool().status().at(0).sharing, Sharing::shared);
  EXPECT_EQ(call(enter(), "a__which"), std::to_string(number));
}

TEST_F(CapabilitiesTest, AskingDuringACallIsEvidenceAgainstSharing) {
  add("a", Sharing::automatic);
  const auto one = enter(mcp::kNewestLegacy, "", "someone");
  EXPECT_EQ(call(one, "a__ask"), "someone");
  settle("a");
  EXPECT_EQ(gateway->pool().status().at(0).sharing, Sharing::per_session);
}

}  // namespace
}  // namespace fairlead::gateway
