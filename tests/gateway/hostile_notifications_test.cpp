// Servers whose notifications are costly to process. No input may block the loop.
#include "gateway/harness.hpp"
#include "support/turns.hpp"

namespace fairlead::gateway {
namespace {

struct LongMember {
  std::string method;
  std::string key;
  std::string line;  // logged for a string that was not decoded
};
class HostileNotificationsTest : public GatewayTest, public ::testing::WithParamInterface<LongMember> {
 protected:
  std::vector<std::string> logged;
};

TEST_P(HostileNotificationsTest, LongEscapedStringDoesNotBlockLoop) {
  const auto& [method, key, line] = GetParam();
  gateway_log =
      Log(LogLevel::debug, LogFormat::text, [&](std::string_view text) { logged.emplace_back(text); });
  std::string escapes;
  while (escapes.size() < test::kLargeFrameBytes - 1000) escapes += R"(\n)";
  const json::Raw params = raw(R"({")" + key + R"(":")" + escapes + R"("})");
  add("s", Sharing::shared);
  const std::shared_ptr<Client> client = connect_client();
  ASSERT_EQ(call(client, "s__which"), "0");
  loop.turn_meter().reset();
  ASSERT_TRUE(instance("s", 0).peer->post_notification(method, params));
  flush_messages("s");
  test::expect_short_turns(loop);
  const auto lines = std::ranges::count_if(
      logged, [&](const std::string& text) { return text.find(line) != std::string::npos; });
  EXPECT_EQ(lines, 1) << "a string over its limit is not decoded";
}

INSTANTIATE_TEST_SUITE_P(
    Members, HostileNotificationsTest,
    ::testing::Values(
        LongMember{"notifications/message", "level", R"(server log message server=s level="" data=)"},
        LongMember{"notifications/resources/updated", "uri", "uri is not a string within max_uri_bytes"},
        LongMember{"notifications/elicitation/complete", "elicitationId",
                   "elicitationId is not a string within max_elicitation_id_bytes"}),
    [](const auto& tested) { return tested.param.key; });

}  // namespace
}  // namespace fairlead::gateway
