// What the gateway says to clients that live on another loop, in another thread.
#include "gateway/client_link.hpp"

#include <future>
#include <latch>

#include "gateway/harness.hpp"
#include "mcp/recording_link.hpp"
#include "support/other_loop.hpp"

namespace fairlead::gateway {
namespace {

class ClientLinkTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kMaxBacklog = 1u << 20;

  Loop here;
  mcp::Server server{"front", "1"};
  std::shared_ptr<mcp::Client> client;  // used on the other loop
  std::vector<std::string> heard;       // there
  std::promise<mcp::Context> asking;    // the client's request, while it is served
  test::OtherLoop other;                // ends before what is used on it

  static json::Raw logged(const std::string& data) { return raw(R"({"level":"info","data":)" + data + "}"); }
  static Task<std::string> hold(ClientLinkTest* self, mcp::Context context) {
    self->asking.set_value(context);
    Task<bool> sleeping = context.sleep(1h);
    const bool slept = co_await sleeping;
    co_return std::string(slept ? "slept" : "cancelled");
  }
  Task<Answer> on_question(std::string method) {
    heard.push_back(other.loop.here() ? method : "asked on the wrong thread");
    co_return raw(R"({"roots":[]})");
  }
  static Task<void> connect(ClientLinkTest* self) {
    mcp::ClientOptions options;
    options.pinned = mcp::kNewestLegacy;
    options.handlers.capabilities = raw(R"({"roots":{}})");
    options.handlers.request = [self](Request request) {
      return self->on_question(std::string(request.method()));
    };
    options.handlers.notified = [self](std::string_view, const json::Raw& params) {
      self->heard.push_back(self->other.loop.here() ? std::string(json::View(params)["data"].text())
                                                    : "told on the wrong thread");
    };
    auto [near_end, far_end] = make_channel(self->other.loop, self->other.loop);
    Limits limits;
    limits.max_backlog_bytes = self->kMaxBacklog;
    mcp::serve(self->server, far_end, limits);
    Task<Result<std::shared_ptr<mcp::Client>>> connecting = mcp::Client::on(near_end, std::move(options));
    const Result<std::shared_ptr<mcp::Client>> connected = co_await connecting;
    EXPECT_TRUE(connected) << connected.error().to_string();
    self->client = *connected;
  }
  static Task<void> call_hold(std::shared_ptr<mcp::Client> client) {
    Task<Result<mcp::ToolResult>> calling = client->call_tool("hold", raw("{}"));
    const Result<mcp::ToolResult> result = co_await calling;
    static_cast<void>(result);
  }
  static Task<void> close(std::shared_ptr<mcp::Client> client) {
    Task<void> closing = client->close();
    co_await closing;
  }
  static Task<void> ask(ClientLink link, std::string method, json::Raw params,
                        std::optional<Result<json::Raw>>* answer) {
    Task<Result<json::Raw>> asking = link.ask(std::move(method), std::move(params));
    Result<json::Raw> answered = co_await asking;
    *answer = std::move(answered);
  }
  void SetUp() override {
    mcp::tool(server, "hold", "",
              [this](mcp::Context context, Nothing) { return hold(this, std::move(context)); });
    other.loop.block_on(connect(this));
    other.loop.spawn(call_hold(client));
  }
  void TearDown() override {
    other.loop.block_on(close(client));
    other.run([this] { client.reset(); });
  }
};

TEST_F(ClientLinkTest, WhatIsSaidAndAskedArrivesOnTheClientsLoopInOrder) {
  const ClientLink link(here, asking.get_future().get());
  std::vector<std::string> expected;
  for (int i = 0; i < 100; ++i) {
    expected.push_back(std::to_string(i));
    EXPECT_TRUE(link.notify("notifications/message", logged(expected.back())));
  }
  expected.emplace_back("roots/list");
  const Result<json::Raw> answer = here.block_on(link.ask("roots/list", json::Raw()));
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->text(), R"({"roots":[]})");
  std::vector<std::string> there;
  other.run([&] { there = heard; });
  EXPECT_EQ(there, expected);
}

TEST_F(ClientLinkTest, WhatWouldWaitForTheClientsLoopOverMaxBacklogBytesIsRefused) {
  const ClientLink link(here, asking.get_future().get());
  const json::Raw large = logged('"' + std::string(600u << 10, 'x') + '"');
  std::latch release(1);
  other.loop.post([&] { release.wait(); });
  const Result<void> sent = link.notify("notifications/message", large);
  const Result<void> refused = link.notify("notifications/message", large);
  std::optional<Result<json::Raw>> answer;
  here.spawn(ask(link, "roots/list", large, &answer));
  bool asked = false;
  here.post([&] { asked = true; });
  here.run_until([&] { return asked; });
  release.count_down();
  EXPECT_TRUE(sent);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(refused.error().message().find("max_backlog_bytes (1048576)"), std::string::npos)
      << refused.error().message();
  ASSERT_TRUE(answer && !*answer);
  EXPECT_EQ(answer->error().kind(), ErrorKind::resource_exhausted);
  other.wait();
  EXPECT_TRUE(link.notify("notifications/message", logged("1")));
  EXPECT_TRUE(here.block_on(link.ask("roots/list", json::Raw())));
  std::size_t arrived = 0;
  other.run([&] { arrived = heard.size(); });
  EXPECT_EQ(arrived, 3u);
}

TEST_F(ClientLinkTest, QuestionFailsWhenItIsGivenUpElsewhere) {
  const ClientLink link(here, asking.get_future().get());
  std::stop_source stop;
  stop.request_stop();
  const Result<json::Raw> answer = here.block_on(link.ask("roots/list", json::Raw(), stop.get_token()));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::cancelled);
}

// Sends a notification and a question, and waits until both have arrived.
void speak(Loop& here, const ClientLink& client) {
  EXPECT_TRUE(client.notify("notifications/message", raw("1")));
  const Result<json::Raw> answer = here.block_on(client.ask("roots/list", raw("{}")));
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->text(), "[]");
}

TEST(ClientLink, ClientIsCalledByTheThreadOfItsOwnLoopOnly) {
  Loop here;
  test::OtherLoop other;
  const auto client = std::make_shared<mcp::RecordingLink>(other.loop);
  client->answer = raw("[]");
  const auto request = std::make_shared<mcp::RequestState>();
  request->link = client;
  speak(here, ClientLink(here, mcp::Context(request)));
  other.wait();
  EXPECT_EQ(client->heard, (std::vector<std::string>{"notifications/message 1", "roots/list {}"}));
  EXPECT_FALSE(client->heard_elsewhere);
}

TEST(ClientLink, NotificationIsSentAtOnceOnTheClientsOwnLoop) {
  Loop here;
  test::OtherLoop other;
  const auto client = std::make_shared<mcp::RecordingLink>(other.loop);
  const auto request = std::make_shared<mcp::RequestState>();
  request->link = client;
  std::size_t heard_at_once = 0;
  other.run([&] {
    EXPECT_TRUE(ClientLink(here, mcp::Context(request)).notify("notifications/message", raw("1")));
    heard_at_once = client->heard.size();
  });
  EXPECT_EQ(heard_at_once, 1u);
  EXPECT_EQ(client->posted().used(), 0u);
}

}  // namespace
}  // namespace fairlead::gateway
