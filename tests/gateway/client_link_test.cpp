// What the gateway says to clients that live on another loop, in another thread.
#include "gateway/client_link.hpp"

#include <future>

#include "gateway/harness.hpp"
#include "support/other_loop.hpp"

namespace fairlead::gateway {
namespace {

class ClientLinkTest : public ::testing::Test {
 protected:
  Loop here;
  mcp::Server server{"front", "1"};
  std::shared_ptr<mcp::Client> client;  // used on the other loop
  std::vector<std::string> heard;       // there
  std::promise<mcp::Context> asking;    // the client's request, while it is served
  test::OtherLoop other;                // ends before what is used on it

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
    mcp::serve(self->server, far_end);
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
    link.notify("notifications/message", raw(R"({"level":"info","data":)" + expected.back() + "}"));
  }
  expected.emplace_back("roots/list");
  const Result<json::Raw> answer = here.block_on(link.ask("roots/list", json::Raw()));
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->text(), R"({"roots":[]})");
  std::vector<std::string> there;
  other.run([&] { there = heard; });
  EXPECT_EQ(there, expected);
}

TEST_F(ClientLinkTest, QuestionFailsWhenItIsGivenUpElsewhere) {
  const ClientLink link(here, asking.get_future().get());
  std::stop_source stop;
  stop.request_stop();
  const Result<json::Raw> answer = here.block_on(link.ask("roots/list", json::Raw(), stop.get_token()));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::cancelled);
}

}  // namespace
}  // namespace fairlead::gateway
