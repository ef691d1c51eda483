// Messages of the gateway to clients on the loop of another thread.
#include "gateway/client_channel.hpp"

#include <future>
#include <latch>

#include "gateway/harness.hpp"
#include "mcp/recording_link.hpp"
#include "support/background_loop.hpp"

namespace fairlead::gateway {
namespace {

class ClientChannelTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kMaxBacklog = 1u << 20;

  Loop gateway_loop;
  mcp::Server server{"front", "1"};
  std::shared_ptr<mcp::Client> client;         // used on the other loop
  std::vector<std::string> received;           // by the client; used on the other loop
  std::promise<mcp::Context> request_context;  // of the client's request, while it is served
  test::BackgroundLoop other;                  // destroyed before the members that it uses

  static json::Raw log_params(const std::string& data) {
    return raw(R"({"level":"info","data":)" + data + "}");
  }
  static Task<std::string> hold(ClientChannelTest* self, mcp::Context context) {
    self->request_context.set_value(context);
    const bool slept = co_await context.sleep(1h);
    co_return std::string(slept ? "slept" : "cancelled");
  }
  Task<Answer> on_request(std::string method) {
    received.push_back(other.loop.in_loop_thread() ? method : "request on the wrong thread");
    co_return raw(R"({"roots":[]})");
  }
  static Task<void> connect(ClientChannelTest* self) {
    mcp::ClientOptions options;
    options.pinned_revision = mcp::kNewestLegacyRevision;
    options.handlers.capabilities = raw(R"({"roots":{}})");
    options.handlers.on_request = [self](Request request) {
      return self->on_request(std::string(request.method()));
    };
    options.handlers.on_notification = [self](std::string_view, const json::Raw& params) {
      self->received.push_back(self->other.loop.in_loop_thread()
                                   ? std::string(json::View(params)["data"].text())
                                   : "notification on the wrong thread");
    };
    auto [near_end, far_end] = make_channel(self->other.loop, self->other.loop);
    Limits limits;
    limits.max_backlog_bytes = self->kMaxBacklog;
    mcp::serve(self->server, far_end, limits);
    const Result<std::shared_ptr<mcp::Client>> connected =
        co_await mcp::Client::connect_over(near_end, std::move(options));
    EXPECT_TRUE(connected) << connected.error().to_string();
    self->client = *connected;
  }
  static Task<void> call_hold(std::shared_ptr<mcp::Client> client) {
    Task<Result<mcp::ToolResult>> calling = client->call_tool("hold", raw("{}"));
    static_cast<void>(co_await calling);
  }
  static Task<void> close(std::shared_ptr<mcp::Client> client) { co_await client->close(); }
  static Task<void> request(ClientChannel channel, std::string method, json::Raw params,
                            std::optional<Result<json::Raw>>* answer) {
    Result<json::Raw> answered = co_await channel.send_request(std::move(method), std::move(params));
    *answer = std::move(answered);
  }
  void SetUp() override {
    mcp::tool(server, "hold", "",
              [this](mcp::Context context, NoArguments) { return hold(this, std::move(context)); });
    other.loop.block_on(connect(this));
    other.loop.spawn(call_hold(client));
  }
  void TearDown() override {
    other.loop.block_on(close(client));
    other.run([this] { client.reset(); });
  }
};

TEST_F(ClientChannelTest, MessagesArriveOnClientLoopInOrder) {
  const ClientChannel channel(gateway_loop, request_context.get_future().get());
  std::vector<std::string> expected;
  for (int i = 0; i < 100; ++i) {
    expected.push_back(std::to_string(i));
    EXPECT_TRUE(channel.notify("notifications/message", log_params(expected.back())));
  }
  expected.emplace_back("roots/list");
  const Result<json::Raw> answer = gateway_loop.block_on(channel.send_request("roots/list", json::Raw()));
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->text(), R"({"roots":[]})");
  std::vector<std::string> there;
  other.run([&] { there = received; });
  EXPECT_EQ(there, expected);
}

TEST_F(ClientChannelTest, MessagesOverMaxBacklogBytesAreRejected) {
  const ClientChannel channel(gateway_loop, request_context.get_future().get());
  const json::Raw large = log_params('"' + std::string(600u << 10, 'x') + '"');
  std::latch release(1);
  other.loop.post([&] { release.wait(); });
  const Result<void> sent = channel.notify("notifications/message", large);
  const Result<void> refused = channel.notify("notifications/message", large);
  std::optional<Result<json::Raw>> answer;
  gateway_loop.spawn(request(channel, "roots/list", large, &answer));
  bool asked = false;
  gateway_loop.post([&] { asked = true; });
  gateway_loop.run_until([&] { return asked; });
  release.count_down();
  EXPECT_TRUE(sent);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(refused.error().message().find("max_backlog_bytes (1048576)"), std::string::npos)
      << refused.error().message();
  ASSERT_TRUE(answer && !*answer);
  EXPECT_EQ(answer->error().kind(), ErrorKind::resource_exhausted);
  other.wait();
  EXPECT_TRUE(channel.notify("notifications/message", log_params("1")));
  EXPECT_TRUE(gateway_loop.block_on(channel.send_request("roots/list", json::Raw())));
  std::size_t arrived = 0;
  other.run([&] { arrived = received.size(); });
  EXPECT_EQ(arrived, 3u);
}

TEST_F(ClientChannelTest, RequestFailsWithCancelledWhenStopIsRequested) {
  const ClientChannel channel(gateway_loop, request_context.get_future().get());
  std::stop_source stop;
  stop.request_stop();
  const Result<json::Raw> answer =
      gateway_loop.block_on(channel.send_request("roots/list", json::Raw(), stop.get_token()));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::cancelled);
}

// Sends a notification and a request, and waits for the response.
void send_both(Loop& gateway_loop, const ClientChannel& client) {
  EXPECT_TRUE(client.notify("notifications/message", raw("1")));
  const Result<json::Raw> answer = gateway_loop.block_on(client.send_request("roots/list", raw("{}")));
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->text(), "[]");
}

TEST(ClientChannelThreadTest, ClientIsUsedOnItsLoopThreadOnly) {
  Loop gateway_loop;
  test::BackgroundLoop other;
  const auto client = std::make_shared<mcp::RecordingLink>(other.loop);
  client->answer = raw("[]");
  const auto request = std::make_shared<mcp::RequestState>();
  request->link = client;
  send_both(gateway_loop, ClientChannel(gateway_loop, mcp::Context(request)));
  other.wait();
  EXPECT_EQ(client->sent, (std::vector<std::string>{"notifications/message 1", "roots/list {}"}));
  EXPECT_FALSE(client->sent_off_loop);
}

TEST(ClientChannelThreadTest, NotificationIsSentAtOnceOnClientLoop) {
  Loop gateway_loop;
  test::BackgroundLoop other;
  const auto client = std::make_shared<mcp::RecordingLink>(other.loop);
  const auto request = std::make_shared<mcp::RequestState>();
  request->link = client;
  std::size_t sent_at_once = 0;
  other.run([&] {
    EXPECT_TRUE(ClientChannel(gateway_loop, mcp::Context(request)).notify("notifications/message", raw("1")));
    sent_at_once = client->sent.size();
  });
  EXPECT_EQ(sent_at_once, 1u);
  EXPECT_EQ(client->posted_bytes().used_bytes(), 0u);
}

}  // namespace
}  // namespace fairlead::gateway
