// WebSocketConnection in both roles, on a pair of real sockets.
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
  UniqueFd raw;  // the client's socket, in tests that send raw bytes instead of using `client`
  Limits limits;
  std::chrono::milliseconds keep_alive{0};

  std::pair<UniqueFd, UniqueFd> sockets() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    return {UniqueFd(fds[0]), UniqueFd(fds[1])};
  }
  std::shared_ptr<WebSocketConnection> make_connection(UniqueFd fd, websocket::Role role,
                                                       std::string read_ahead = {}) {
    auto stream = http::make_plain_stream(loop, std::move(fd));
    EXPECT_TRUE(stream);
    return WebSocketConnection::create(loop, std::move(*stream), std::move(read_ahead), role, limits,
                                       keep_alive);
  }
  void start() {
    auto [a, b] = sockets();
    server = make_connection(std::move(a), websocket::Role::server);
    client = make_connection(std::move(b), websocket::Role::client);
  }
  void start_raw(std::string read_ahead = {}) {
    auto [a, b] = sockets();
    server = make_connection(std::move(a), websocket::Role::server, std::move(read_ahead));
    raw = std::move(b);
  }
  void TearDown() override {
    if (server) server->close();
    if (client) client->close();
    bool done = false;
    loop.post([&] { loop.post([&] { done = true; }); });
    loop.run_until([&] { return done; });
  }

  static Task<Result<void>> send_message(std::shared_ptr<Connection> to, std::string text) {
    Result<void> sent = co_await to->send(test::rope(text));
    co_return sent;
  }
  static Task<std::string> receive_message(std::shared_ptr<Connection> from) {
    const Result<rpc::Message> message = co_await from->receive();
    co_return message ? std::string(message->frame().view()) : message.error().to_string();
  }
  std::string receive(const std::shared_ptr<WebSocketConnection>& from) {
    return loop.block_on(receive_message(from));
  }

  void write_raw(const std::string& bytes) {
    ASSERT_EQ(::send(raw.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  // Returns the next frame from the server, decoded in the client role.
  websocket::Decoder::Event read_raw() {
    while (true) {
      websocket::Decoder::Event event = decoder_.next();
      if (event.type != websocket::Decoder::EventType::need_more) return event;
      char bytes[4096];
      ssize_t n = -1;
      loop.run_until([&] {
        n = ::recv(raw.get(), bytes, sizeof bytes, MSG_DONTWAIT);
        if (n < 0) loop.post([] {});  // poll again
        return n >= 0;
      });
      if (n == 0) return event;
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
  const Result<void> sent = loop.block_on(send_message(server, '"' + std::string(8u << 20, 'x') + '"'));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().kind(), ErrorKind::timeout);
  EXPECT_NE(sent.error().message().find("write_stall"), std::string::npos) << sent.error().message();
  EXPECT_TRUE(server->closed());
}

TEST_F(WebSocketConnectionTest, LargestMessagesDoNotBlockTheLoop) {
  start();
  for (const std::string& value : test::hostile_values(test::kLargeFrameBytes)) {
    SCOPED_TRACE(value.substr(0, 40));
    const std::string text = R"({"jsonrpc":"2.0","method":"m","params":{"a":)" + value + "}}";
    for (const bool upwards : {true, false}) {
      auto body = [](std::shared_ptr<Connection> to, std::string message) -> Task<void> {
        const Result<void> sent = co_await to->send(test::rope(message));
        EXPECT_TRUE(sent);
      };
      test::expect_short_turns(loop, [&] {
        loop.spawn(body(upwards ? client : server, text));
        EXPECT_TRUE(receive(upwards ? server : client) == text);
      });
    }
  }
}

TEST_F(WebSocketConnectionTest, MessagesAreSentInBothDirections) {
  start();
  ASSERT_TRUE(loop.block_on(send_message(client, ping_text(1))));
  EXPECT_EQ(receive(server), ping_text(1));
  ASSERT_TRUE(loop.block_on(send_message(server, ping_text(2))));
  EXPECT_EQ(receive(client), ping_text(2));
}

Task<void> send_twice_after_receive(std::shared_ptr<Connection> connection, bool* done) {
  rpc::Rope one = test::rope(ping_text(1));
  rpc::Rope two = test::rope(ping_text(2));
  const Result<rpc::Message> message = co_await connection->receive();
  const Result<void> first = co_await connection->send(std::move(one));
  const Result<void> second = co_await connection->send(std::move(two));
  *done = message && first && second;
}

// The first send is written at the end of the turn that reads; the second send must not wait for more input.
TEST_F(WebSocketConnectionTest, SecondSendDoesNotWaitForInput) {
  start();
  bool done = false;
  loop.spawn(send_twice_after_receive(client, &done));
  bool waits = false;
  loop.post([&] { waits = true; });  // runs after the spawned task has started to receive
  loop.run_until([&] { return waits; });
  ASSERT_TRUE(server->post(test::rope(ping_text(0))));
  const bool sent = loop.block_on(test::eventually(
      loop, [&] { return done; }, 5s));
  ASSERT_TRUE(sent);
  EXPECT_EQ(receive(server), ping_text(1));
  EXPECT_EQ(receive(server), ping_text(2));
}

TEST_F(WebSocketConnectionTest, LargeMessagesArriveComplete) {
  start();
  const std::string large =
      R"({"jsonrpc":"2.0","method":"m","params":[")" + std::string(3u << 20, 'x') + "\"]}";
  for (const auto& [from, to] : {std::pair(client, server), std::pair(server, client)}) {
    ASSERT_TRUE(from->post(test::rope(large)));
    EXPECT_EQ(receive(to), large);
  }
}

std::shared_ptr<ByteBudget> make_budget(std::size_t bytes) {
  ByteBudgetLimits limits;
  limits.max_client_buffer_bytes = bytes;
  return ByteBudget::create(limits);
}

TEST_F(WebSocketConnectionTest, IncompleteMessageIsRejectedWhenClientExceedsItsBudget) {
  start_raw();
  const auto budget = make_budget(50'000);
  server->charge_to(budget->account("a"));
  std::string frame(
      websocket::text_frame(websocket::Role::client, test::rope(std::string(90'000, 'x'))).joined().view());
  frame.resize(40'000);
  write_raw(frame);
  loop.run_until([&] { return budget->used_bytes() == 40'000; });
  write_raw(std::string(20'000, 'x'));
  const websocket::Decoder::Event closed = read_raw();
  EXPECT_EQ(closed.type, websocket::Decoder::EventType::closed);
  EXPECT_EQ(closed.code, websocket::kTryAgainLater);
  EXPECT_NE(closed.payload.find("max_client_buffer_bytes (50000 bytes)"), std::string::npos)
      << closed.payload;
  EXPECT_EQ(budget->used_bytes(), 0u);
}

TEST_F(WebSocketConnectionTest, ConnectionIsClosedWhenUnreadResponsesExceedBudgetOfClient) {
  start_raw();
  const auto budget = make_budget(5'000'000);
  server->charge_to(budget->account("a"));
  const rpc::Rope response = test::rope(std::string(3'000'000, '1'));
  ASSERT_TRUE(server->post(response, RelatedRequest{.id = "1", .message_is_response = true}));
  const Result<void> second = server->post(response, RelatedRequest{.id = "2", .message_is_response = true});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind(), ErrorKind::resource_exhausted);
  const std::string end = receive(server);
  EXPECT_NE(end.find("max_client_buffer_bytes (5000000 bytes)"), std::string::npos) << end;
  EXPECT_EQ(budget->used_bytes(), 0u);
}

Task<void> record_messages(std::shared_ptr<Connection> connection, std::string name,
                           std::vector<std::string>* order) {
  while (true) {
    const Result<rpc::Message> message = co_await connection->receive();
    if (!message) co_return;
    order->push_back(name);
  }
}

TEST_F(WebSocketConnectionTest, MessageOfQuietClientWaitsForOneMessageOfEachOtherConnection) {
  constexpr std::size_t kFloodCount = 10;
  // Frames of the first connection in one turn, while no other client waits.
  constexpr std::size_t kFramesPerTurn = 64;
  const auto budget = ByteBudget::create();
  std::vector<std::shared_ptr<WebSocketConnection>> connections;
  std::vector<UniqueFd> ends;
  std::vector<std::string> order;
  const auto connect = [&](const std::string& name, const std::string& sent) {
    auto [a, b] = sockets();
    connections.push_back(make_connection(std::move(a), websocket::Role::server));
    connections.back()->charge_to(budget->account(name));
    loop.spawn(record_messages(connections.back(), name, &order));
    ASSERT_EQ(::send(b.get(), sent.data(), sent.size(), 0), static_cast<ssize_t>(sent.size()));
    ends.push_back(std::move(b));
  };
  const std::string one(
      websocket::text_frame(websocket::Role::client, test::rope(ping_text(1))).joined().view());
  std::string many;
  for (int i = 0; i < 200; ++i) many += one;
  for (std::size_t i = 0; i < kFloodCount; ++i) connect("flood", many);
  connect("quiet", one);
  loop.run_until([&] { return order.size() == 200 * kFloodCount + 1; });
  const auto before = std::ranges::find(order, "quiet") - order.begin();
  EXPECT_LE(static_cast<std::size_t>(before), kFramesPerTurn + 2 * kFloodCount);
  for (const auto& connection : connections) connection->close();
}

TEST_F(WebSocketConnectionTest, BytesReadWithHandshakeAreDecoded) {
  start_raw(
      std::string(websocket::text_frame(websocket::Role::client, test::rope(ping_text(1))).joined().view()));
  EXPECT_EQ(receive(server), ping_text(1));
}

TEST_F(WebSocketConnectionTest, PongRepeatsPayloadOfPing) {
  start_raw();
  write_raw(websocket::control_frame(websocket::Role::client, websocket::Opcode::ping, "hello"));
  const websocket::Decoder::Event pong = read_raw();
  EXPECT_EQ(pong.type, websocket::Decoder::EventType::pong);
  EXPECT_EQ(pong.payload, "hello");
}

TEST_F(WebSocketConnectionTest, CloseFrameIsAnsweredAndEndsConnection) {
  start_raw();
  write_raw(websocket::close_frame(websocket::Role::client, websocket::kGoingAway, "bye"));
  EXPECT_EQ(read_raw().code, websocket::kGoingAway);
  EXPECT_NE(receive(server).find("closed the connection"), std::string::npos);
  EXPECT_TRUE(server->closed());
}

TEST_F(WebSocketConnectionTest, UnmaskedFrameIsRejectedWithProtocolError) {
  start_raw();
  write_raw(websocket::control_frame(websocket::Role::server, websocket::Opcode::ping, ""));
  EXPECT_EQ(read_raw().code, websocket::kProtocolError);
  EXPECT_NE(receive(server).find("not masked"), std::string::npos);
}

TEST_F(WebSocketConnectionTest, MessageOverMaxFrameBytesIsRejected) {
  limits.max_frame_bytes = 1000;
  start_raw();
  const rpc::Rope frame = websocket::text_frame(websocket::Role::client, test::rope(std::string(1001, 'x')));
  write_raw(std::string(frame.joined().view()));
  EXPECT_EQ(read_raw().code, websocket::kMessageTooBig);
  EXPECT_NE(receive(server).find("max_frame_bytes (1000)"), std::string::npos);
}

TEST_F(WebSocketConnectionTest, ConnectionFailsAfterTwoPingsWithoutReply) {
  keep_alive = 10ms;
  start_raw();
  EXPECT_EQ(read_raw().type, websocket::Decoder::EventType::ping);
  write_raw(websocket::control_frame(websocket::Role::client, websocket::Opcode::pong, ""));
  EXPECT_EQ(read_raw().type, websocket::Decoder::EventType::ping);
  EXPECT_NE(receive(server).find(": ping got no"), std::string::npos);
}

TEST_F(WebSocketConnectionTest, CloseIsSeenByRemotePeer) {
  start();
  server->close();
  EXPECT_NE(receive(client).find("closed the connection"), std::string::npos);
}

}  // namespace
}  // namespace fairlead::transport
