// Servers receive the capabilities of the connected clients, and no others.
#include "gateway/harness.hpp"

namespace fairlead::gateway {
namespace {

Task<void> request_roots(std::shared_ptr<Peer> peer, bool* answered) {
  CallOptions options;
  static_cast<void>(co_await peer->call("roots/list", json::Raw(), std::move(options)));
  *answered = true;
}
Task<Answer> answer_roots(Request) {
  co_return raw(R"({"roots":[]})");
}

class CapabilitiesTest : public GatewayTest {
 protected:
  CapabilitiesTest() {
    customize = [](Instance& instance) {
      mcp::tool(instance.server, "capabilities", "", [](mcp::Context context, const NoArguments&) {
        return std::string(context.client_capabilities().text());
      });
    };
  }
  static constexpr const char* kSampling = R"({"sampling":{}})";
};

TEST_F(CapabilitiesTest, ServerReceivesNoCapabilitiesWhenNoClientHasAny) {
  add("a", Sharing::automatic);
  const auto one = connect_client();
  EXPECT_EQ(call(one, "a__capabilities"), "{}");
  EXPECT_EQ(call(one, "a__which"), "0");
}

TEST_F(CapabilitiesTest, UnusedServerIsRestartedWithUnionOfClientCapabilities) {
  add("a", Sharing::automatic);
  start_events["a"];
  const auto plain = connect_client();
  start_events["a"].set();
  EXPECT_TRUE(has_tool(plain, "a__capabilities"));
  const auto sampling = connect_client(mcp::kNewestLegacyRevision, "", "someone");
  client_handler = answer_roots;
  const auto all = connect_client();
  EXPECT_EQ(call(plain, "a__capabilities"),
            R"({"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}})");
  EXPECT_EQ(call(plain, "a__which"), "1")
      << "started once for its lists, and again with the capabilities of its clients";
}

TEST_F(CapabilitiesTest, ServerThatHasServedCallKeepsItsCapabilities) {
  add("a", Sharing::automatic);
  const auto plain = connect_client();
  EXPECT_EQ(call(plain, "a__capabilities"), "{}");
  const auto sampling = connect_client(mcp::kNewestLegacyRevision, "", "someone");
  EXPECT_EQ(call(sampling, "a__capabilities"), "{}");
  EXPECT_EQ(call(sampling, "a__which"), "0") << "the state of earlier calls is not lost";
}

TEST_F(CapabilitiesTest, ServerIsNotRestartedWhenNoCapabilityIsMissing) {
  add("a", Sharing::automatic);
  start_events["a"];
  const auto one = connect_client(mcp::kNewestLegacyRevision, "", "someone");
  const auto other = connect_client(mcp::kNewestLegacyRevision, "", "another");
  ASSERT_TRUE(gateway->update_server(config.servers.front()));
  start_events["a"].set();
  EXPECT_EQ(call(one, "a__capabilities"), kSampling);
  const std::string number = call(one, "a__which");
  disconnect(other);
  EXPECT_EQ(call(one, "a__which"), number);
}

TEST_F(CapabilitiesTest, PerSessionServerReceivesCapabilitiesOfItsClientOnly) {
  add("a", Sharing::per_session);
  const auto plain = connect_client();
  const auto sampling = connect_client(mcp::kNewestLegacyRevision, "", "someone");
  EXPECT_EQ(call(plain, "a__capabilities"), "{}");
  EXPECT_EQ(call(sampling, "a__capabilities"), kSampling);
}

TEST_F(CapabilitiesTest, RootsRequestBetweenCallsKeepsServerShared) {
  client_handler = answer_roots;
  add("a", Sharing::automatic);
  const auto one = connect_client();
  const std::size_t number = std::stoul(call(one, "a__which"));
  bool answered = false;
  loop.spawn(request_roots(instance("a", number).peer, &answered));
  ASSERT_TRUE(wait_until([&] { return answered; }));
  flush_messages("a");
  EXPECT_EQ(gateway->pool().status().at(0).sharing, Sharing::shared);
  EXPECT_EQ(call(connect_client(), "a__which"), std::to_string(number));
}

TEST_F(CapabilitiesTest, RequestToClientDuringCallMakesServerPerSession) {
  add("a", Sharing::automatic);
  const auto one = connect_client(mcp::kNewestLegacyRevision, "", "someone");
  EXPECT_EQ(call(one, "a__ask"), "someone");
  flush_messages("a");
  EXPECT_EQ(gateway->pool().status().at(0).sharing, Sharing::per_session);
}

}  // namespace
}  // namespace fairlead::gateway
