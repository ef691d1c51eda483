// Servers whose notifications are costly to process. No input may hold the loop.
#include "gateway/harness.hpp"
#include "support/turns.hpp"

namespace fairlead::gateway {
namespace {

class HostileNotificationsTest : public GatewayTest,
                                 public ::testing::WithParamInterface<std::pair<std::string, std::string>> {};

TEST_P(HostileNotificationsTest, LongEscapedStringDoesNotHoldTheLoop) {
  const auto& [method, key] = GetParam();
  std::string escapes;
  while (escapes.size() < test::kLargestFrame - 1000) escapes += R"(\n)";
  const json::Raw params = raw(R"({")" + key + R"(":")" + escapes + R"("})");
  add("s", Sharing::shared);
  const std::shared_ptr<Client> client = enter();
  ASSERT_EQ(call(client, "s__which"), "0");
  loop.turns().reset();
  ASSERT_TRUE(instance("s", 0).peer->post_notification(method, params));
  settle("s");
  test::expect_short_turns(loop);
}

INSTANTIATE_TEST_SUITE_P(Members, HostileNotificationsTest,
                         ::testing::Values(std::pair("notifications/message", "level"),
                                           std::pair("notifications/resources/updated", "uri"),
                                           std::pair("notifications/elicitation/complete", "elicitationId")),
                         [](const auto& tested) { return tested.param.second; });

}  // namespace
}  // namespace fairlead::gateway
