// A server that sends without pause must not block the client's loop or exhaust its memory. Uses real
// sockets.
#include <gtest/gtest.h>

#include "fairlead/peer/peer.hpp"
#include "fairlead/transport/connect.hpp"
#include "http/client.hpp"
#include "http/raw_client.hpp"
#include "http/script_server.hpp"
#include "http/websocket.hpp"
#include "support/support.hpp"
#include "support/turns.hpp"

namespace fairlead::transport {
namespace websocket = http::websocket;
namespace {

using namespace std::chrono_literals;
using test::ReceivedRequest;
using test::Reply;
using test::ScriptServer;

// The number is lower in slow builds, because data of the flood is parsed between any two steps of a call.
constexpr int kCallsDuringFlood = test::kTurnFactor == 1 ? 50 : 10;
constexpr std::size_t kFloodBytesBeforeCalls = test::kTurnFactor == 1 ? 8u << 20 : 1u << 20;

std::string repeated(std::string_view text, std::size_t bytes) {
  std::string all;
  while (all.size() < bytes) all += text;
  return all;
}

class ClientFloodTest : public ::testing::Test {
 public:
  Loop loop;
  ConnectOptions options;
  std::atomic<bool> test_over = false;
  std::atomic<std::size_t> flooded = 0;  // bytes
  std::shared_ptr<Connection> hostile;
  std::shared_ptr<Peer> hostile_peer;

  // Sends `bytes` repeatedly until the test is over, each time as an HTTP chunk if `chunked`.
  void flood(Reply& reply, const std::string& bytes, bool chunked) {
    while (!test_over) {
      chunked ? reply.chunk(bytes) : reply.send(bytes);
      flooded += bytes.size();
    }
  }
  void connect(const std::string& url) {
    hostile = loop.block_on(transport::connect(loop, url, options)).value();
    PeerOptions peer_options;
    peer_options.malformed_frames = MalformedFramePolicy::skip;
    auto methods = std::make_shared<Methods>();
    hostile_peer = Peer::start(hostile, std::move(methods), peer_options);
  }
  static Task<void> call_hostile(std::shared_ptr<Peer> peer) {
    static_cast<void>(co_await peer->call("tools/call", test::raw("{}")));
  }
  static Task<void> call_other_server(Loop* on, http::HttpClient* client, std::string url, int* served,
                                      bool* done) {
    for (int i = 0; i < kCallsDuringFlood; ++i) {
      http::ClientRequest request("GET", http::Url::parse(url).value());
      auto waiter = std::make_shared<http::CancellableWaiter>(*on);
      const Result<std::shared_ptr<http::ClientResponse>> response =
          co_await client->send(std::move(request), waiter);
      if (response && (*response)->status() == 200) ++*served;
    }
    *done = true;
  }
  // After `sent_before` bytes of the flood, expects that calls over another connection succeed, that turns
  // stay short, and that memory stays bounded.
  void expect_others_are_served(std::size_t sent_before = kFloodBytesBeforeCalls) {
    test::HttpServer other_server;
    other_server.route("/x", [](const std::shared_ptr<http::Exchange>& exchange) {
      exchange->respond(http::Response::text(200, "x"));
    });
    const auto client = http::HttpClient::create(loop, ConnectOptions()).value();
    if (hostile_peer) loop.spawn(call_hostile(hostile_peer));
    ASSERT_TRUE(loop.block_on(test::eventually(loop, [&] { return flooded > sent_before; })));
    const std::size_t memory = test::allocated_bytes();
    loop.turn_meter().reset();
    int served = 0;
    bool done = false;
    loop.spawn(
        call_other_server(&loop, client.get(), "http://" + other_server.address() + "/x", &served, &done));
    EXPECT_TRUE(loop.block_on(test::eventually(loop, [&] { return done; })));
    EXPECT_EQ(served, kCallsDuringFlood);
    EXPECT_LT(loop.turn_meter().longest_turn(), test::kTurnBound);
    EXPECT_LT(test::allocated_bytes(), memory + (64u << 20));
    client->close();
  }
  // Expects the same while a server repeats `event` on its stream.
  void expect_others_are_served_during(const std::string& event) {
    ScriptServer server([&](const ReceivedRequest&, Reply& reply) {
      reply.begin_events();
      flood(reply, repeated(event, 64u << 10), true);
    });
    connect(server.url());
    expect_others_are_served();
    test_over = true;
    hostile->close();
  }
  void TearDown() override {
    test_over = true;
    if (!hostile) return;
    hostile->close();
    loop.run_until([&] { return hostile_peer->finished().is_set(); });
  }
};

TEST_F(ClientFloodTest, EventStreamCommentsDoNotStarveTheLoop) {
  expect_others_are_served_during(":\n");
}

TEST_F(ClientFloodTest, NotificationsDoNotStarveTheLoop) {
  expect_others_are_served_during("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n");
}

TEST_F(ClientFloodTest, MalformedEventsDoNotStarveTheLoop) {
  expect_others_are_served_during("data:x\n\n");
}

TEST_F(ClientFloodTest, WebSocketFramesDoNotStarveTheLoop) {
  for (const std::string& frame :
       {websocket::control_frame(websocket::Role::server, websocket::Opcode::ping, ""),
        std::string(websocket::text_frame(websocket::Role::server, test::rope("x")).joined().view())}) {
    test_over = false;
    flooded = 0;
    ScriptServer server([&](const ReceivedRequest& request, Reply& reply) {
      reply.send(
          "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
          "Sec-WebSocket-Accept: " +
          websocket::accept_header_value(request.headers.get("Sec-WebSocket-Key")) + "\r\n\r\n");
      flood(reply, repeated(frame, 64u << 10), false);
    });
    connect("ws" + server.url().substr(4));
    expect_others_are_served(kFloodBytesBeforeCalls / 8);  // frames of two bytes
    test_over = true;
    hostile->close();
    loop.run_until([&] { return hostile_peer->finished().is_set(); });
  }
}

TEST_F(ClientFloodTest, InterimResponsesAreBounded) {
  ScriptServer server([this](const ReceivedRequest&, Reply& reply) {
    flood(reply, repeated("HTTP/1.1 100 Continue\r\n\r\n", 64u << 10), false);
  });
  const auto client = http::HttpClient::create(loop, options).value();
  auto waiter = std::make_shared<http::CancellableWaiter>(loop);
  const auto response =
      loop.block_on(client->send(http::ClientRequest("GET", http::Url::parse(server.url()).value()), waiter));
  test_over = true;
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind(), ErrorKind::parse);
  EXPECT_NE(response.error().message().find("max_interim_responses (16)"), std::string::npos)
      << response.error().message();
}

}  // namespace
}  // namespace fairlead::transport
