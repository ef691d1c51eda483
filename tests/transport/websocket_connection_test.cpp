// Messages over WebSockets, both roles, on a pair of real sockets.
#include "transport/websocket_connection.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "support/hostile_json.hpp"
#include "support/support.hpp"
#include "support/turns.hpp"

namespace fairlead::transport {
namespace {

using namespace std::chrono_literals;

class WebSocketConnectionTest : public ::testing::Test {
 public:
  Loop loop;
  std::shared_ptr<WebSocketConnection> server;
  std::shared_ptr<WebSocketConnection> client;
  UniqueFd raw;  // instead of a client
  Limits limits;
  std::chrono::milliseconds keep_alive{0};

  std::pair<UniqueFd, UniqueFd> sockets() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    return {UniqueFd(fds[0]), UniqueFd(fds[1])};
  }
  std::shared_ptr<WebSocketConnection> made(UniqueFd fd, websocket::Role role, std::string early = {}) {
    auto stream = http::plain_stream(loop, std::move(fd));
    EXPECT_TRUE(stream);
    return WebSocketConnection::create(loop, std::move(*stream), std::move(early), role, limits, keep_alive);
  }
  void start() {
    auto [a, b] = sockets();
    server = made(std::move(a), websocket::Role::server);
    client = made(std::move(b), websocket::Role::client);
  }
  void start_raw(std::string early = {}) {
    auto [a, b] = sockets();
    server = made(std::move(a), websocket::Role::server, std::move(early));
    raw = std::move(b);
  }
  void TearDown() override {
    if (server) server->close();
    if (client) client->close();
    bool done = false;
    loop.post([&] { loop.post([&] { done = true; }); });
    loop.run_until([&] { return done; });
  }

  static Task<Result<void>> send_one(std::shared_ptr<Connection> to, std::string text) {
    Result<void> sent = co_await to->send(test::rope(text));
    co_return sent;
  }
  static Task<std::string> receive_one(std::shared_ptr<Connection> from) {
    const Result<rpc::Message> got = co_await from->receive();
    co_return got ? std::string(got->frame().view()) : got.error().to_string();
  }
  std::string receive(const std::shared_ptr<WebSocketConnection>& from) {
    return loop.block_on(receive_one(from));
  }

  void write_raw(const std::string& bytes) {
    ASSERT_EQ(::send(raw.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  // What the server sends next, decoded as a client does.
  websocket::Decoder::Step read_raw() {
    while (true) {
      websocket::Decoder::Step step = decoder_.next();
      if (step.what != websocket::Decoder::What::more) return step;
      char bytes[4096];
      ssize_t n = -1;
      loop.run_until([&] {
        n = ::recv(raw.get(), bytes, sizeof bytes, MSG_DONTWAIT);
        if (n < 0) loop.post([] {});  // look again
        return n >= 0;
      });
      if (n == 0) return step;
      decoder_.feed(std::string_view(bytes, static_cast<std::size_t>(n)));
    }
  }

 private:
  websocket::Decoder decoder_{websocket::Role::client, 1u << 20};
};

std::string ping_text(int id) {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"method":"ping"})";
}

TEST_F(WebSocketConnectionTest, SendFailsWithTimeoutThatNamesWriteStallWhenClientReadsNothing) {
  limits.write_stall = 50ms;
  start_raw();
  const Result<void> sent = loop.block_on(send_one(server, '"' + std::string(8u << 20, 'x') + '"'));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().kind(), ErrorKind::timeout);
  EXPECT_NE(sent.error().message().find("write_stall"), std::string::npos) << sent.error().message();
  EXPECT_TRUE(server->closed());
}

TEST_F(WebSocketConnectionTest, LargestMessagesDoNotHoldTheLoop) {
  start();
  for (const std::string& value : test::hostile_values(test::kLargestFrame)) {
    SCOPED_TRACE(value.substr(0, 40));
    const std::string text = R"({"jsonrpc":"2.0","method":"m","params":{"a":)" + value + "}}";
    for (const bool upwards : {true, false}) {
      auto body = [](std::shared_ptr<Connection> to, std::string what) -> Task<void> {
        const Result<void> sent = co_await to->send(test::rope(what));
        EXPECT_TRUE(sent);
      };
      test::expect_short_turns(loop, [&] {
        loop.spawn(body(upwards ? client : server, text));
        EXPECT_TRUE(receive(upwards ? server : client) == text);
      });
    }
  }
}

TEST_F(WebSocketConnectionTest, MessagesGoBothWays) {
  start();
  ASSERT_TRUE(loop.block_on(send_one(client, ping_text(1))));
  EXPECT_EQ(receive(server), ping_text(1));
  ASSERT_TRUE(loop.block_on(send_one(server, ping_text(2))));
  EXPECT_EQ(receive(client), ping_text(2));
}

Task<void> answer_twice(std::shared_ptr<Connection> connection, bool* done) {
  rpc::Rope one = test::rope(ping_text(1));
  rpc::Rope two = test::rope(ping_text(2));
  const Result<rpc::Message> got = co_await connection->receive();
  const Result<void> first = co_await connection->send(std::move(one));
  const Result<void> second = co_await connection->send(std::move(two));
  *done = got && first && second;
}

// The first send is done when the batch that was read is flushed; the second must not wait for more input.
TEST_F(WebSocketConnectionTest, MessageSentWhenAnotherHasLeftDoesNotWaitForInput) {
  start();
  bool done = false;
  loop.spawn(answer_twice(client, &done));
  bool waits = false;
  loop.post([&] { waits = true; });  // behind the spawned task, which receives by then
  loop.run_until([&] { return waits; });
  ASSERT_TRUE(server->post(test::rope(ping_text(0))));
  const bool sent = loop.block_on(test::eventually(
      loop, [&] { return done; }, 5s));
  ASSERT_TRUE(sent);
  EXPECT_EQ(receive(server), ping_text(1));
  EXPECT_EQ(receive(server), ping_text(2));
}

TEST_F(WebSocketConnectionTest, LargeMessagesAreWhole) {
  start();
  const std::string large =
      R"({"jsonrpc":"2.0","method":"m","params":[")" + std::string(3u << 20, 'x') + "\"]}";
  for (const auto& [from, to] : {std::pair(client, server), std::pair(server, client)}) {
    ASSERT_TRUE(from->post(test::rope(large)));
    EXPECT_EQ(receive(to), large);
  }
}

std::shared_ptr<ByteBudget> budget_of(std::size_t bytes) {
  ByteBudgetLimits limits;
  limits.max_client_buffer_bytes = bytes;
  return ByteBudget::create(limits);
}

TEST_F(WebSocketConnectionTest, HalfSentMessageIsRefusedWhenTheClientIsOverItsBudget) {
  start_raw();
  const auto budget = budget_of(50'000);
  server->charge_to(budget->account("a"));
  std::string frame(
      websocket::text_frame(websocket::Role::client, test::rope(std::string(90'000, 'x'))).joined().view());
  frame.resize(40'000);
  write_raw(frame);
  loop.run_until([&] { return budget->used() == 40'000; });
  write_raw(std::string(20'000, 'x'));
  const websocket::Decoder::Step closed = read_raw();
  EXPECT_EQ(closed.what, websocket::Decoder::What::closed);
  EXPECT_EQ(closed.code, websocket::kTryAgainLater);
  EXPECT_NE(closed.payload.find("max_client_buffer_bytes (50000 bytes)"), std::string::npos)
      << closed.payload;
  EXPECT_EQ(budget->used(), 0u);
}

TEST_F(WebSocketConnectionTest, ClientThatLeavesAnswersUnreadLosesItsConnectionWhenItIsOverItsBudget) {
  start_raw();
  const auto budget = budget_of(5'000'000);
  server->charge_to(budget->account("a"));
  const rpc::Rope answer = test::rope(std::string(3'000'000, '1'));
  ASSERT_TRUE(server->post(answer, Concerning{.request = "1", .answers = true}));
  const Result<void> second = server->post(answer, Concerning{.request = "2", .answers = true});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind(), ErrorKind::resource_exhausted);
  const std::string end = receive(server);
  EXPECT_NE(end.find("max_client_buffer_bytes (5000000 bytes)"), std::string::npos) << end;
  EXPECT_EQ(budget->used(), 0u);
}

Task<void> record_messages(std::shared_ptr<Connection> connection, std::string name,
                           std::vector<std::string>* order) {
  while (true) {
    const Result<rpc::Message> got = co_await connection->receive();
    if (!got) co_return;
    order->push_back(name);
  }
}

TEST_F(WebSocketConnectionTest, MessageOfAQuietClientWaitsForOneMessageOfEachOther) {
  constexpr std::size_t kFloods = 10;
  constexpr std::size_t kOneTurn = 64;  // of the first connection, which finds nobody waiting
  const auto budget = ByteBudget::create();
  std::vector<std::shared_ptr<WebSocketConnection>> connections;
  std::vector<UniqueFd> ends;
  std::vector<std::string> order;
  const auto connect = [&](const std::string& name, const std::string& sent) {
    auto [a, b] = sockets();
    connections.push_back(made(std::move(a), websocket::Role::server));
    connections.back()->charge_to(budget->account(name));
    loop.spawn(record_messages(connections.back(), name, &order));
    ASSERT_EQ(::send(b.get(), sent.data(), sent.size(), 0), static_cast<ssize_t>(sent.size()));
    ends.push_back(std::move(b));
  };
  const std::string one(
      websocket::text_frame(websocket::Role::client, test::rope(ping_text(1))).joined().view());
  std::string many;
  for (int i = 0; i < 200; ++i) many += one;
  for (std::size_t i = 0; i < kFloods; ++i) connect("flood", many);
  connect("quiet", one);
  loop.run_until([&] { return order.size() == 200 * kFloods + 1; });
  const auto before = std::ranges::find(order, "quiet") - order.begin();
  EXPECT_LE(static_cast<std::size_t>(before), kOneTurn + 2 * kFloods);
  for (const auto& connection : connections) connection->close();
}

TEST_F(WebSocketConnectionTest, WhatWasReadWithTheHandshakeCounts) {
  start_raw(
      std::string(websocket::text_frame(websocket::Role::client, test::rope(ping_text(1))).joined().view()));
  EXPECT_EQ(receive(server), ping_text(1));
}

TEST_F(WebSocketConnectionTest, PingsAreAnsweredWithWhatTheySaid) {
  start_raw();
  write_raw(websocket::control_frame(websocket::Role::client, websocket::Opcode::ping, "hello"));
  const websocket::Decoder::Step pong = read_raw();
  EXPECT_EQ(pong.what, websocket::Decoder::What::pong);
  EXPECT_EQ(pong.payload, "hello");
}

TEST_F(WebSocketConnectionTest, ACloseIsAnsweredAndEndsTheConnection) {
  start_raw();
  write_raw(websocket::close_frame(websocket::Role::client, websocket::kGoingAway, "bye"));
  EXPECT_EQ(read_raw().code, websocket::kGoingAway);
  EXPECT_NE(receive(server).find("closed the connection"), std::string::npos);
  EXPECT_TRUE(server->closed());
}

TEST_F(WebSocketConnectionTest, AnUnmaskedFrameIsRefusedWithItsCode) {
  start_raw();
  write_raw(websocket::control_frame(websocket::Role::server, websocket::Opcode::ping, ""));
  EXPECT_EQ(read_raw().code, websocket::kProtocolError);
  EXPECT_NE(receive(server).find("not masked"), std::string::npos);
}

TEST_F(WebSocketConnectionTest, AMessageOverTheLimitIsRefusedByName) {
  limits.max_frame_bytes = 1000;
  start_raw();
  const rpc::Rope frame = websocket::text_frame(websocket::Role::client, test::rope(std::string(1001, 'x')));
  write_raw(std::string(frame.joined().view()));
  EXPECT_EQ(read_raw().code, websocket::kTooBig);
  EXPECT_NE(receive(server).find("max_frame_bytes (1000)"), std::string::npos);
}

TEST_F(WebSocketConnectionTest, WhoIsSilentForTwoPingsIsGone) {
  keep_alive = 10ms;
  start_raw();
  EXPECT_EQ(read_raw().what, websocket::Decoder::What::ping);
  write_raw(websocket::control_frame(websocket::Role::client, websocket::Opcode::pong, ""));
  EXPECT_EQ(read_raw().what, websocket::Decoder::What::ping);
  EXPECT_NE(receive(server).find("has not been heard of"), std::string::npos);
}

TEST_F(WebSocketConnectionTest, ClosingTellsTheOtherSide) {
  start();
  server->close();
  EXPECT_NE(receive(client).find("closed the connection"), std::string::npos);
}

}  // namespace
}  // namespace fairlead::transport
