// Servers whose questions to clients are costly to process. No input may hold the loop.
#include "gateway/harness.hpp"
#include "support/turns.hpp"

namespace fairlead::gateway {
namespace {

constexpr std::string_view kAskingTools =
    R"({"tools":[{"name":"t","inputSchema":{"type":"object"}}],"resultType":"complete","ttlMs":0,"cacheScope":"private"})";

Task<Answer> declined(Request) {
  co_return raw(R"({"action":"decline"})");
}

std::string question_filled_with(std::string_view piece) {
  std::string text;
  while (text.size() < test::kLargestFrame - 2000) text += piece;
  return text;
}

class HostileQuestionsTest : public GatewayTest,
                             public ::testing::WithParamInterface<std::pair<std::string, std::string>> {
 protected:
  // A modern server that asks with `questions` once, and is content with any answer.
  void add_asking(const std::string& questions) {
    furnish = [this, questions](Instance& instance) {
      auto scripted = std::make_shared<Scripted>(loop);
      scripted->results["tools/list"] = kAskingTools;
      scripted->call_result = [this, questions](const mcp::BackendRequest&) {
        if (std::exchange(asked, true))
          return std::string(R"({"resultType":"complete","content":[{"type":"text","text":"done"}]})");
        return R"({"resultType":"input_required","inputRequests":)" + questions + R"(,"requestState":"s"})";
      };
      instance.server.backend(scripted);
    };
    add("a", Sharing::shared, mcp::kNewest);
  }
  bool asked = false;
};

TEST_P(HostileQuestionsTest, LargestQuestionForALegacyClientDoesNotHoldTheLoop) {
  add_asking(R"({"q":{"method":"elicitation/create","params":)" + GetParam().second + "}}");
  answers = declined;
  const auto client = enter();
  ASSERT_TRUE(has(client, "a__t"));
  loop.turns().reset();
  EXPECT_EQ(call(client, "a__t"), "done");
  test::expect_short_turns(loop);
}

INSTANTIATE_TEST_SUITE_P(
    Params, HostileQuestionsTest,
    ::testing::Values(std::pair("Empties", R"({"a":[)" + question_filled_with("{},") + "{}]}"),
                      std::pair("Numbers", R"({"a":[)" + question_filled_with("1,") + "1]}"),
                      std::pair("Escapes", R"({"message":")" + question_filled_with(R"(\n)") + "\"}")),
    [](const auto& tested) { return tested.param.first; });

}  // namespace
}  // namespace fairlead::gateway
