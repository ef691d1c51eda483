// The lists, when servers are slow, broken, or not done. R12.1; PEERS §1.9.
#include "fairlead/mcp/backend.hpp"
#include "fairlead/rpc/codes.hpp"
#include "gateway/harness.hpp"

namespace fairlead::gateway {
namespace {

TEST_F(GatewayTest, a_slow_server_does_not_hold_up_first_calls_to_others) {
  add("quick", Sharing::shared);
  add("slow", Sharing::shared);
  config.list_wait = 1h;
  held["slow"];
  const auto one = enter();
  EXPECT_EQ(call(one, "quick__which"), "0");
  EXPECT_NE(call(one, "quick__nothing").find("Unknown tool"), std::string::npos);
  EXPECT_NE(call(one, "nobody__nothing").find("Unknown tool"), std::string::npos);
  subscribe(one);
  // And one of its own waits for it.
  std::string answer;
  loop.spawn(call_beside(one->client, "slow__which", &answer));
  EXPECT_EQ(call(one, "quick__which"), "0");
  EXPECT_EQ(answer, "");
  held["slow"].set();
  EXPECT_TRUE(comes_true([&] { return !answer.empty(); }));
  EXPECT_EQ(answer, "0");
}

TEST_F(GatewayTest, a_list_has_one_page) {
  add("a", Sharing::shared);
  const auto one = enter();
  const Result<json::Raw> page = loop.block_on(one->client->request("tools/list", raw(R"({"cursor":"1"})")));
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().detail().rpc_code, rpc::kInvalidParams);
}

// Has prompts, and says it has tools.
class HalfBroken final : public mcp::Backend {
 public:
  HalfBroken(Loop& loop, bool silent) : loop_(loop), silent_(silent) {}
  bool has_capability(std::string_view capability) const override {
    return capability == "tools" || capability == "prompts";
  }
  Task<Answer> serve(mcp::BackendRequest request) override {
    asked = true;
    if (request.message.method() == "prompts/list") co_return raw(R"({"prompts":[{"name":"p"}]})");
    if (silent_) {
      const bool told = co_await never_.wait(loop_, Clock::duration::max());
      static_cast<void>(told);
    }
    co_return Error::rpc(rpc::kInternalError, "the tools are broken");
  }
  json::Raw input_schema(std::string_view) const override { return json::Raw(); }
  Task<Result<std::shared_ptr<void>>> subscribe(mcp::BackendSubscription) override {
    co_return Error::rpc(rpc::kInternalError, "no");
  }
  void session_began(std::string_view, Reach) override {}
  void log_level_set(std::string_view, mcp::LoggingLevel) override {}
  void session_ended(std::string_view) override { never_.set(); }
  bool asked = false;

 private:
  Loop& loop_;
  bool silent_;
  Event never_;
};

TEST_F(GatewayTest, a_list_that_fails_does_not_take_the_others_along) {
  furnish = [this](Instance& instance) {
    instance.server.backend(std::make_shared<HalfBroken>(loop, false));
  };
  add("a", Sharing::shared);
  const auto one = enter();
  const Result<std::vector<json::Raw>> prompts = loop.block_on(one->client->prompts());
  ASSERT_TRUE(prompts);
  ASSERT_EQ(prompts->size(), 1u);
  EXPECT_EQ(json::View(prompts->front())["name"].as_string(), "a__p");
  const std::string health(gateway->health().text());
  EXPECT_NE(health.find("tools/list: "), std::string::npos) << health;
  EXPECT_NE(health.find("the tools are broken"), std::string::npos) << health;
}

TEST_F(GatewayTest, shutting_down_does_not_wait_for_lists) {
  std::shared_ptr<HalfBroken> broken = std::make_shared<HalfBroken>(loop, true);
  furnish = [&](Instance& instance) { instance.server.backend(broken); };
  add("a", Sharing::shared);
  enter();
  ASSERT_TRUE(comes_true([&] { return broken->asked; }));
  loop.block_on(gateway->shutdown(1h));
}

}  // namespace
}  // namespace fairlead::gateway
