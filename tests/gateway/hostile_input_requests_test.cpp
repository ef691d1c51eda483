// Servers whose input requests are costly to process. No input may block the loop.
#include <ostream>

#include "gateway/harness.hpp"
#include "support/turns.hpp"

namespace fairlead::gateway {
namespace {

constexpr std::string_view kToolsList =
    R"({"tools":[{"name":"t","inputSchema":{"type":"object"}}],"resultType":"complete","ttlMs":0,"cacheScope":"private"})";

Task<Answer> declined(Request) {
  co_return raw(R"({"action":"decline"})");
}

// The params of an input request: `head`, then `piece` repeated until the frame is full, then `tail`.
struct LargeParams {
  const char* name;
  const char* head;
  const char* piece;
  const char* tail;

  friend void PrintTo(const LargeParams& params, std::ostream* out) { *out << params.name; }
};

class HostileInputRequestsTest : public GatewayTest, public ::testing::WithParamInterface<LargeParams> {
 protected:
  // A modern server that requires input once, and accepts any response.
  HostileInputRequestsTest() {
    std::string text = R"({"resultType":"input_required","requestState":"s","inputRequests":{"q":)";
    text += std::string(R"({"method":"elicitation/create","params":)") + GetParam().head;
    while (text.size() < test::kLargeFrameBytes - 1000) text += GetParam().piece;
    next_result = raw(text + GetParam().tail + "}}}");
    customize = [this](Instance& instance) {
      auto scripted = std::make_shared<ScriptedServer>(loop);
      scripted->results["tools/list"] = kToolsList;
      scripted->call_result = [this](const mcp::BackendRequest&) {
        return std::exchange(next_result, final_result);
      };
      instance.server.backend(scripted);
    };
    add("a", Sharing::shared, mcp::kNewestRevision);
  }
  json::Raw next_result;
  const json::Raw final_result =
      raw(R"({"resultType":"complete","content":[{"type":"text","text":"final_result"}]})");
};

TEST_P(HostileInputRequestsTest, LargestInputRequestForLegacyClientDoesNotBlockLoop) {
  client_handler = declined;
  const auto client = connect_client();
  ASSERT_TRUE(has_tool(client, "a__t"));
  loop.turn_meter().reset();
  EXPECT_EQ(call(client, "a__t"), "final_result");
  test::expect_short_turns(loop);
}

INSTANTIATE_TEST_SUITE_P(Params, HostileInputRequestsTest,
                         ::testing::Values(LargeParams{"Empties", R"({"a":[)", "{},", "{}]}"},
                                           LargeParams{"Numbers", R"({"a":[)", "1,", "1]}"},
                                           LargeParams{"Escapes", R"({"message":")", R"(\n)", "\"}"}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace fairlead::gateway
