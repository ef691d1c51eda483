// Our client when connections to servers that others have written are cut, and when those forget it.
#include "session.hpp"

namespace fairlead::mcp {
namespace {

class Cut : public Sdk {
 public:
  void tell_server(const std::string& word) {
    const Result<void> told = control->post(test::rope(word));
    ASSERT_TRUE(told) << told.error().to_string();
    EXPECT_EQ(loop.block_on(hear(control)), word);
  }
};
INSTANTIATE_TEST_SUITE_P(Http, Cut, ::testing::ValuesIn(http_cases()), name_of);

TEST_P(Cut, ACallIsResumed) {
  ASSERT_TRUE(loop.block_on(client->set_log_level(LoggingLevel::info)));
  const auto counting = start("tools/call", R"({"name":"count","arguments":{"to":3,"cut":1}})");
  ASSERT_TRUE(until([&] { return counting->steps.size() == 1 && count("notifications/message") == 1; }));
  tell_server("cut");
  ASSERT_TRUE(until([&] { return counting->answer.has_value(); }));
  if (is_modern(revision)) {  // a call is its connection there
    EXPECT_FALSE(*counting->answer);
  } else {
    ASSERT_TRUE(*counting->answer) << counting->answer->error().to_string();
    EXPECT_EQ(json::View(**counting->answer)["content"][0]["text"].as_string(), "counted to 3");
    EXPECT_EQ(counting->steps, (std::vector<int>{1, 2, 3}));
    EXPECT_TRUE(until([&] { return count("notifications/message") >= 3; }));
    EXPECT_EQ(count("notifications/message"), 3U);
  }
  EXPECT_EQ(call("echo", R"({"message":"still here"})"), "still here");
}

// The modern era, which 2.x is found to speak, has no sessions.
std::vector<Case> session_cases() {
  std::vector<Case> all = http_cases();
  std::erase_if(all, [](const Case& one) { return one.server == "v2" && !one.pinned; });
  return all;
}
class Forgotten : public Cut {};
INSTANTIATE_TEST_SUITE_P(Http, Forgotten, ::testing::ValuesIn(session_cases()), name_of);

TEST_P(Forgotten, ASessionIsBegunAgain) {
  // What is added to a session is gone with it.
  EXPECT_EQ(call("grow"), "grown");
  EXPECT_EQ(call("grown"), "grown");
  tell_server("forget");
  EXPECT_NE(call("grown"), "grown");
  EXPECT_EQ(call("echo", R"({"message":"two"})"), "two");
  EXPECT_EQ(call("sample", R"({"message":"hello"})"), "parrot: hello");
}

}  // namespace
}  // namespace fairlead::mcp
