// R8.3: the HTTP client reuses connections.
#include "http/client_fixture.hpp"
#include "http/raw_client.hpp"

namespace fairlead::http {
namespace {

using namespace std::chrono_literals;

TEST_F(HttpClientTest, ConnectionsAreReused) {
  ScriptServer server([](const ReceivedRequest&, Reply& reply) { reply.respond(200, "text/plain", "ok"); });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(get(server.url())->body, "ok");
  EXPECT_EQ(server.connection_count(), 1);
  EXPECT_EQ(client->idle_count(), 1U);
}

// The test counts the callbacks of the loop: if a request did not end its wait, all later requests would wake
// that wait too.
TEST_F(HttpClientTest, RequestsOnReusedConnectionDoNotGetSlower) {
  constexpr int kBlocks = 20;
  constexpr int kCallsPerBlock = 1'000;
  constexpr std::size_t kMaxCallbacks = 6 * kCallsPerBlock;
  test::HttpServer server;
  server.route(
      "/x", [](const std::shared_ptr<Exchange>& exchange) { exchange->respond(Response::text(200, "x")); });
  create_client();
  std::size_t memory = 0;
  for (int block = 0; block < kBlocks; ++block) {
    std::size_t callbacks = 0;
    int served = 0;
    loop.spawn(get_many("http://" + server.address() + "/x", kCallsPerBlock, &served));
    loop.run_until([&] { return ++callbacks > kMaxCallbacks || served == kCallsPerBlock; });
    ASSERT_EQ(served, kCallsPerBlock) << "in block " << block;
    if (block == 0) memory = test::allocated_bytes();
  }
  EXPECT_LT(test::allocated_bytes(), memory + (8u << 20));
  EXPECT_EQ(client->idle_count(), 1U);
}

// A connection that is closed after its exchange would have to be opened again for the next one, at a
// multiple of its cost.
TEST_F(HttpClientTest, ConnectionsOfManyConcurrentRequestsAreReused) {
  constexpr int kConcurrent = 100;
  ScriptServer server([](const ReceivedRequest&, Reply& reply) { reply.respond(200, "text/plain", "ok"); });
  create_client();
  for (int round = 0; round < 2; ++round) {
    int served = 0;
    for (int i = 0; i < kConcurrent; ++i) loop.spawn(get_many(server.url(), 1, &served));
    loop.run_until([&] { return served == kConcurrent && client->idle_count() == kConcurrent; });
  }
  EXPECT_EQ(server.connection_count(), kConcurrent);
}

TEST_F(HttpClientTest, IdleConnectionIsClosedAfterItsLastUse) {
  options.idle_timeout = 500ms;
  ScriptServer server([](const ReceivedRequest&, Reply& reply) { reply.respond(200, "text/plain", "ok"); });
  EXPECT_TRUE(get(server.url()));
  loop.block_on([](Loop& on) -> Task<void> { co_await sleep_for(on, 100ms); }(loop));
  const auto last_use = Clock::now();
  EXPECT_TRUE(get(server.url()));
  EXPECT_TRUE(idle_connections_become(0));
  EXPECT_GE(Clock::now() - last_use, 500ms);
  EXPECT_EQ(server.connection_count(), 1);
}

// The client keeps the constant part of a head for the next request.
TEST_F(HttpClientTest, HeadBelongsToItsRequest) {
  options.headers = Headers{{"X-Fixed", "configured"}};
  ScriptServer server([](const ReceivedRequest&, Reply& reply) { reply.respond(200, "text/plain", "ok"); });
  create_client();
  EXPECT_TRUE(get(server.url("/a"), "POST", "body"));
  EXPECT_TRUE(get(server.url("/b"), "POST"));
  EXPECT_TRUE(get(server.url("/b"), "GET"));
  ClientRequest request("GET", Url::parse(server.url("/b")).value());
  request.headers = Headers{{"x-fixed", "replaced"}, {"Host", "other"}};
  EXPECT_TRUE(loop.block_on(fetch(std::move(request))));
  EXPECT_TRUE(get(server.url("/b"), "GET"));
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 5U);
  EXPECT_EQ(requests[0].method + requests[0].target + requests[0].body, "POST/abody");
  EXPECT_EQ(requests[0].headers.get("Content-Length"), "4");
  EXPECT_EQ(requests[1].method + requests[1].target, "POST/b");
  EXPECT_EQ(requests[1].headers.get("Content-Length"), "0");
  EXPECT_EQ(requests[2].method + requests[2].target, "GET/b");
  EXPECT_FALSE(requests[2].headers.has("Content-Length"));
  EXPECT_EQ(requests[3].headers.get("X-Fixed"), "replaced");
  EXPECT_EQ(requests[3].headers.get("Host"), "other");
  EXPECT_EQ(requests[3].headers.count("X-Fixed") + requests[3].headers.count("Host"), 2U);
  EXPECT_EQ(requests[4].headers.get("X-Fixed"), "configured");
}

TEST_F(HttpClientTest, ConnectionClosedByServerIsNotPooled) {
  ScriptServer server([](const ReceivedRequest&, Reply& reply) {
    reply.respond(200, "text/plain", "ok", "Connection: close\r\n");
    reply.disconnect();
  });
  EXPECT_TRUE(get(server.url()));
  EXPECT_TRUE(get(server.url()));
  EXPECT_EQ(server.connection_count(), 2);
  EXPECT_EQ(client->idle_count(), 0U);
}

}  // namespace
}  // namespace fairlead::http
