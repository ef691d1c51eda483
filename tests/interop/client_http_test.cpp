// The Fairlead client when a server of another project closes its connections, and when it ends its session.
#include "interop_test.hpp"

namespace fairlead::mcp {
namespace {

class ConnectionLossTest : public SdkServerTest {
 public:
  // Sends a control message to the server's process, and waits for the confirmation.
  void send_control_message(const std::string& command) {
    const Result<void> sent = control->post(test::rope(command));
    ASSERT_TRUE(sent) << sent.error().to_string();
    EXPECT_EQ(loop.block_on(read_control_message(control)), command);
  }
};
INSTANTIATE_TEST_SUITE_P(Http, ConnectionLossTest, ::testing::ValuesIn(http_cases()), case_name);

TEST_P(ConnectionLossTest, LegacyCallIsResumedAndModernCallFails) {
  ASSERT_TRUE(loop.block_on(client->set_log_level(LoggingLevel::info)));
  const auto counting = start("tools/call", R"({"name":"count","arguments":{"to":3,"cut":1}})");
  ASSERT_TRUE(wait_until([&] { return counting->steps.size() == 1 && count("notifications/message") == 1; }));
  send_control_message("cut");
  ASSERT_TRUE(wait_until([&] { return counting->response.has_value(); }));
  if (is_modern(revision)) {  // a modern call ends with its connection
    EXPECT_FALSE(*counting->response);
  } else {
    ASSERT_TRUE(*counting->response) << counting->response->error().to_string();
    EXPECT_EQ(json::View(**counting->response)["content"][0]["text"].as_string(), "counted to 3");
    EXPECT_EQ(counting->steps, (std::vector<int>{1, 2, 3}));
    EXPECT_TRUE(wait_until([&] { return count("notifications/message") >= 3; }));
    EXPECT_EQ(count("notifications/message"), 3U);
  }
  EXPECT_EQ(call("echo", R"({"message":"still here"})"), "still here");
}

// Omits the SDK 2.x without a pinned revision: the client then uses the modern era, which has no sessions.
std::vector<ServerCase> session_cases() {
  std::vector<ServerCase> all = http_cases();
  std::erase_if(
      all, [](const ServerCase& server_case) { return server_case.server == "v2" && !server_case.pinned; });
  return all;
}
class SessionLossTest : public ConnectionLossTest {};
INSTANTIATE_TEST_SUITE_P(Http, SessionLossTest, ::testing::ValuesIn(session_cases()), case_name);

TEST_P(SessionLossTest, NewSessionIsStartedWhenServerHasEndedTheOld) {
  // A tool that is added to a session is removed with the session.
  EXPECT_EQ(call("grow"), "grown");
  EXPECT_EQ(call("grown"), "grown");
  send_control_message("forget");
  EXPECT_NE(call("grown"), "grown");
  EXPECT_EQ(call("echo", R"({"message":"two"})"), "two");
  EXPECT_EQ(call("sample", R"({"message":"hello"})"), "parrot: hello");
}

}  // namespace
}  // namespace fairlead::mcp
