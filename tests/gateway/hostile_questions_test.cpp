// Servers whose questions to clients are costly to process. No input may hold the loop.
#include <ostream>

#include "gateway/harness.hpp"
#include "support/turns.hpp"

namespace fairlead::gateway {
namespace {

constexpr std::string_view kAskingTools =
    R"({"tools":[{"name":"t","inputSchema":{"type":"object"}}],"resultType":"complete","ttlMs":0,"cacheScope":"private"})";

Task<Answer> declined(Request) {
  co_return raw(R"({"action":"decline"})");
}

// The params of a question: `piece` between `head` and `tail`, as often as it takes.
struct LargeParams {
  const char* name;
  const char* head;
  const char* piece;
  const char* tail;

  friend void PrintTo(const LargeParams& params, std::ostream* out) { *out << params.name; }
};

class HostileQuestionsTest : public GatewayTest, public ::testing::WithParamInterface<LargeParams> {
 protected:
  // A modern server that asks once, and is content with any answer.
  HostileQuestionsTest() {
    std::string text = R"({"resultType":"input_required","requestState":"s","inputRequests":{"q":)";
    text += std::string(R"({"method":"elicitation/create","params":)") + GetParam().head;
    while (text.size() < test::kLargestFrame - 1000) text += GetParam().piece;
    asking = raw(text + GetParam().tail + "}}}");
    furnish = [this](Instance& instance) {
      auto scripted = std::make_shared<Scripted>(loop);
      scripted->results["tools/list"] = kAskingTools;
      scripted->call_result = [this](const mcp::BackendRequest&) { return std::exchange(asking, done); };
      instance.server.backend(scripted);
    };
    add("a", Sharing::shared, mcp::kNewest);
  }
  json::Raw asking;
  const json::Raw done = raw(R"({"resultType":"complete","content":[{"type":"text","text":"done"}]})");
};

TEST_P(HostileQuestionsTest, LargestQuestionForALegacyClientDoesNotHoldTheLoop) {
  answers = declined;
  const auto client = enter();
  ASSERT_TRUE(has(client, "a__t"));
  loop.turns().reset();
  EXPECT_EQ(call(client, "a__t"), "done");
  test::expect_short_turns(loop);
}

INSTANTIATE_TEST_SUITE_P(Params, HostileQuestionsTest,
                         ::testing::Values(LargeParams{"Empties", R"({"a":[)", "{},", "{}]}"},
                                           LargeParams{"Numbers", R"({"a":[)", "1,", "1]}"},
                                           LargeParams{"Escapes", R"({"message":")", R"(\n)", "\"}"}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace fairlead::gateway
