// Servers that send without pause: the loop of the client goes on, and memory stays bounded. Real sockets.
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
using test::Asked;
using test::Reply;
using test::ScriptServer;

// Fewer where the build is slower: a flood is parsed between any two steps of a call.
constexpr int kCallsMeanwhile = test::kTurnFactor == 1 ? 50 : 10;
constexpr std::size_t kFloodBefore = test::kTurnFactor == 1 ? 8u << 20 : 1u << 20;

std::string repeated(std::string_view text, std::size_t bytes) {
  std::string all;
  while (all.size() < bytes) all += text;
  return all;
}

class ClientFloodTest : public ::testing::Test {
 public:
  Loop loop;
  ConnectOptions options;
  std::atomic<bool> over = false;
  std::atomic<std::size_t> flooded = 0;  // bytes
  std::shared_ptr<Connection> hostile;
  std::shared_ptr<Peer> hostile_peer;

  // Sends `bytes` until the test is over, in chunks or as they are.
  void flood(Reply& reply, const std::string& bytes, bool chunked) {
    while (!over) {
      chunked ? reply.chunk(bytes) : reply.send(bytes);
      flooded += bytes.size();
    }
  }
  void connect(const std::string& url) {
    hostile = loop.block_on(transport::connect(loop, url, options)).value();
    PeerOptions peer_options;
    peer_options.noise = Noise::skip;
    auto methods = std::make_shared<Methods>();
    hostile_peer = Peer::start(hostile, std::move(methods), peer_options);
  }
  static Task<void> call_hostile(std::shared_ptr<Peer> peer) {
    Result<json::Raw> answer = co_await peer->call("tools/call", test::raw("{}"));
    static_cast<void>(answer);
  }
  static Task<void> call_good(Loop* on, http::HttpClient* client, std::string url, int* served, bool* done) {
    for (int i = 0; i < kCallsMeanwhile; ++i) {
      http::Outgoing request("GET", http::Url::parse(url).value());
      auto interrupt = std::make_shared<http::Interrupt>(*on);
      Task<Result<std::shared_ptr<http::Incoming>>> asking = client->ask(std::move(request), interrupt);
      const Result<std::shared_ptr<http::Incoming>> answer = co_await asking;
      if (answer && (*answer)->status() == 200) ++*served;
    }
    *done = true;
  }
  // Calls over another connection once `sent_before` bytes of the flood were sent, and how long a turn took.
  void expect_others_are_served(std::size_t sent_before = kFloodBefore) {
    test::HttpServer good;
    good.route("/x", [](const std::shared_ptr<http::Exchange>& exchange) {
      exchange->respond(http::Response::text(200, "x"));
    });
    const auto client = http::HttpClient::create(loop, ConnectOptions()).value();
    if (hostile_peer) loop.spawn(call_hostile(hostile_peer));
    ASSERT_TRUE(loop.block_on(test::eventually(loop, [&] { return flooded > sent_before; })));
    const std::size_t memory = test::allocated_bytes();
    loop.turns().reset();
    int served = 0;
    bool done = false;
    loop.spawn(call_good(&loop, client.get(), "http://" + good.address() + "/x", &served, &done));
    EXPECT_TRUE(loop.block_on(test::eventually(loop, [&] { return done; })));
    EXPECT_EQ(served, kCallsMeanwhile);
    EXPECT_LT(loop.turns().longest(), test::kTurnBound);
    EXPECT_LT(test::allocated_bytes(), memory + (64u << 20));
    client->close();
  }
  // The same while a server repeats `event` on its stream.
  void expect_others_are_served_during(const std::string& event) {
    ScriptServer server([&](const Asked&, Reply& reply) {
      reply.begin_events();
      flood(reply, repeated(event, 64u << 10), true);
    });
    connect(server.url());
    expect_others_are_served();
    over = true;
    hostile->close();
  }
  void TearDown() override {
    over = true;
    if (!hostile) return;
    hostile->close();
    loop.run_until([&] { return hostile_peer->finished().is_set(); });
  }
};

TEST_F(ClientFloodTest, CommentsOfAnEventStreamDoNotStarveTheLoop) {
  expect_others_are_served_during(":\n");
}

TEST_F(ClientFloodTest, NotificationsDoNotStarveTheLoop) {
  expect_others_are_served_during("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n");
}

TEST_F(ClientFloodTest, EventsThatAreNoMessagesDoNotStarveTheLoop) {
  expect_others_are_served_during("data:x\n\n");
}

TEST_F(ClientFloodTest, FramesOfAWebSocketDoNotStarveTheLoop) {
  for (const std::string& frame :
       {websocket::control_frame(websocket::Role::server, websocket::Opcode::ping, ""),
        std::string(websocket::text_frame(websocket::Role::server, test::rope("x")).joined().view())}) {
    over = false;
    flooded = 0;
    ScriptServer server([&](const Asked& asked, Reply& reply) {
      reply.send(
          "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
          "Sec-WebSocket-Accept: " +
          websocket::accept_of(asked.headers.get("Sec-WebSocket-Key")) + "\r\n\r\n");
      flood(reply, repeated(frame, 64u << 10), false);
    });
    connect("ws" + server.url().substr(4));
    expect_others_are_served(kFloodBefore / 8);  // frames of two bytes
    over = true;
    hostile->close();
    loop.run_until([&] { return hostile_peer->finished().is_set(); });
  }
}

TEST_F(ClientFloodTest, InterimAnswersAreBounded) {
  ScriptServer server([this](const Asked&, Reply& reply) {
    flood(reply, repeated("HTTP/1.1 100 Continue\r\n\r\n", 64u << 10), false);
  });
  const auto client = http::HttpClient::create(loop, options).value();
  auto interrupt = std::make_shared<http::Interrupt>(loop);
  const auto answer =
      loop.block_on(client->ask(http::Outgoing("GET", http::Url::parse(server.url()).value()), interrupt));
  over = true;
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::parse);
  EXPECT_NE(answer.error().message().find("max_interim_responses (16)"), std::string::npos)
      << answer.error().message();
}

}  // namespace
}  // namespace fairlead::transport
