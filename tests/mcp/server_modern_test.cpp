// Modern requests without a connection: each with a link of its own, as HTTP serves them.
#include "mcp/server_modern.hpp"

#include <vector>

#include "mcp/harness.hpp"
#include "mcp/recording_link.hpp"

namespace fairlead::mcp {
namespace {

class ModernTest : public ServerTest {
 public:
  std::shared_ptr<Subscriptions> subscriptions = std::make_shared<Subscriptions>(
      2, "in this test", std::make_shared<SubscriptionShares>(SubscriptionLimits()));
  std::vector<std::string> answers;

  static Task<void> run(ModernTest& test, Request request, std::shared_ptr<ClientLink> link) {
    auto modern = std::make_shared<const ModernServer>(test.server.state(), test.subscriptions, Log());
    Task<Answer> serving = serve_modern(modern, request, CallFacts::of(request.message()), link);
    const Answer answer = co_await serving;
    test.answers.push_back(answer ? std::string(answer->text()) : answer.error().message());
  }
  void serve_listen(const std::string& id, const std::shared_ptr<ClientLink>& link, std::stop_token stop) {
    const std::string text = R"({"jsonrpc":"2.0","id":)" + id +
                             R"(,"method":"subscriptions/listen","params":{"notifications":)"
                             R"({"toolsListChanged":true},)" +
                             kEnvelope + "}}";
    loop.spawn(
        run(*this, Request(nullptr, rpc::Message::parse(Bytes::copy_of(text)), std::move(stop)), link));
    turn();
  }
  void turn() {
    bool done = false;
    loop.post([&] { done = true; });
    loop.run_until([&] { return done; });
  }
};

TEST_F(ModernTest, TwoClientsMayListenUnderTheSameId) {
  const auto first = std::make_shared<RecordingLink>(loop);
  const auto second = std::make_shared<RecordingLink>(loop);
  std::stop_source gone;
  std::stop_source stays;
  serve_listen("7", first, gone.get_token());
  serve_listen("7", second, stays.get_token());
  EXPECT_EQ(subscriptions->size(), 2u);
  gone.request_stop();
  turn();
  EXPECT_EQ(subscriptions->size(), 1u);
  server.remove_tool("half");
  turn();
  EXPECT_EQ(first->heard.size(), 1u);  // its acknowledgement
  ASSERT_EQ(second->heard.size(), 2u);
  EXPECT_EQ(second->heard.back(),
            "notifications/tools/list_changed "
            R"({"_meta":{"io.modelcontextprotocol/subscriptionId":7}})");
  stays.request_stop();
  turn();
  EXPECT_EQ(answers.size(), 2u);
}

TEST_F(ModernTest, OneSubscriptionTooManyIsRefused) {
  const auto link = std::make_shared<RecordingLink>(loop);
  std::stop_source stop;
  for (const char* id : {"1", "2", "3"}) serve_listen(id, link, stop.get_token());
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers.front(), "Subscription limit reached (2 in this test)");
  subscriptions->end_all();
  turn();
  EXPECT_EQ(answers.size(), 3u);
  EXPECT_EQ(subscriptions->size(), 0u);
}

}  // namespace
}  // namespace fairlead::mcp
