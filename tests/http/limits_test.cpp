// R8.2: time, memory and connections that a client can use are limited.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <future>
#include <string>
#include <vector>

#include "http/raw_client.hpp"
#include "support/support.hpp"
#include "support/turns.hpp"

namespace fairlead::http {
namespace {

using namespace std::chrono_literals;
using test::HttpServer;
using test::RawClient;
using test::wait_until;
using ExchangePtr = std::shared_ptr<Exchange>;

constexpr std::string_view kGet = "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n";

void respond_at_once(const ExchangePtr& exchange) {
  exchange->respond(Response::text(200, "x"));
}

// Returns options with long timeouts, except for those that `change` sets.
template <class Change>
ServerOptions with(Change change) {
  ServerOptions options;
  options.header_timeout = options.body_timeout = options.keep_alive_timeout = options.write_stall = 1h;
  change(options);
  return options;
}

TEST(HttpLimitsTest, SlowHeadGets408AfterHeaderTimeout) {
  HttpServer server(with([](ServerOptions& o) { o.header_timeout = 200ms; }));
  server.route("/x", respond_at_once);
  RawClient slow = server.client();
  ASSERT_TRUE(slow.send("GET /x HTTP/1.1\r\nHost: local"));
  // Each byte arrives within an idle timeout; the whole head exceeds header_timeout.
  for (bool open = true; open;) {
    std::this_thread::sleep_for(10ms);
    open = slow.send("a");
    pollfd ready{slow.fd(), POLLIN, 0};
    if (::poll(&ready, 1, 0) > 0) break;
  }
  const auto response = slow.read_response();
  EXPECT_EQ(response.status, 408);
  EXPECT_NE(response.body.find("header_timeout (200 ms)"), std::string::npos);
  EXPECT_EQ(server.client().request(kGet).body, "x");
}

TEST(HttpLimitsTest, StalledBodyGets408AfterBodyTimeout) {
  HttpServer server(with([](ServerOptions& o) { o.body_timeout = 100ms; }));
  RawClient client = server.client();
  ASSERT_TRUE(client.send("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf"));
  const auto response = client.read_response();
  EXPECT_EQ(response.status, 408);
  EXPECT_NE(response.body.find("body_timeout (100 ms)"), std::string::npos);
}

// Sends `bytes` as part of a body repeatedly, with `pause` in between, until the response arrives.
RawClient::Response send_body_slowly(HttpServer& server, std::string_view bytes,
                                     std::chrono::milliseconds pause) {
  RawClient client = server.client();
  client.send("POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 1000; ++i) {
    client.send(bytes);
    pollfd ready{client.fd(), POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(pause.count())) == 1) return client.read_response();
  }
  return {};
}

TEST(HttpLimitsTest, BodyBelowMinimumRateGets408) {
  HttpServer server(with([](ServerOptions& o) {
    o.body_rate_window = 200ms;
    o.min_body_bytes_per_second = 10'000;
  }));
  server.route("/x", respond_at_once);
  // Each byte arrives within body_timeout.
  const auto response = send_body_slowly(server, "1\r\na\r\n", 10ms);
  EXPECT_EQ(response.status, 408);
  EXPECT_NE(response.body.find("min_body_bytes_per_second (10000) over body_rate_window (200 ms)"),
            std::string::npos)
      << response.body;
  EXPECT_TRUE(wait_until([&] { return server.connection_count() == 0; }));
}

// Bytes outside of the body, such as chunk extensions, do not count.
TEST(HttpLimitsTest, ChunkExtensionsDoNotCountAsBodyProgress) {
  HttpServer server(with([](ServerOptions& o) {
    o.body_rate_window = 200ms;
    o.min_body_bytes_per_second = 10'000;
  }));
  server.route("/x", respond_at_once);
  EXPECT_EQ(send_body_slowly(server, "1;" + std::string(500, 'x') + "\r\na\r\n", 10ms).status, 408);
}

TEST(HttpLimitsTest, BodyAboveMinimumRateIsAcceptedHoweverLongItTakes) {
  HttpServer server(with([](ServerOptions& o) {
    o.body_rate_window = 1s;
    o.min_body_bytes_per_second = 100;
  }));
  server.route("/x", respond_at_once);
  RawClient client = server.client();
  ASSERT_TRUE(client.send("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000\r\n\r\n"));
  for (int i = 0; i < 50; ++i) {  // two and a half seconds: more than two windows
    ASSERT_TRUE(client.send(std::string(1000, 'x')));
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_EQ(client.read_response().status, 200);
}

// The second body of a connection has its own window.
TEST(HttpLimitsTest, EachBodyHasItsOwnRateWindow) {
  HttpServer server(with([](ServerOptions& o) {
    o.body_rate_window = 2s;
    o.min_body_bytes_per_second = 100;
  }));
  server.route("/x", respond_at_once);
  RawClient client = server.client();
  const std::string head = "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60\r\n\r\n";
  ASSERT_TRUE(client.send(head));
  std::this_thread::sleep_for(1200ms);
  ASSERT_TRUE(client.send(std::string(60, 'x') + head));
  EXPECT_EQ(client.read_response().status, 200);
  std::this_thread::sleep_for(1200ms);
  ASSERT_TRUE(client.send(std::string(60, 'x')));
  EXPECT_EQ(client.read_response().status, 200);
}

TEST(HttpLimitsTest, IncompleteBodiesOfAllConnectionsShareOneLimit) {
  HttpServer server(with([](ServerOptions& o) {
    o.max_body_bytes = 1'000'000;
    ByteBudgetLimits limits;
    limits.max_buffer_bytes = 2'000'000;
    o.budget = ByteBudget::create(limits);
  }));
  server.route("/x", respond_at_once);
  const std::string head = "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n";
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(server.client());
    ASSERT_TRUE(clients.back().send(head + std::string(900'000, 'x')));
  }
  std::size_t refused = 3;
  ASSERT_TRUE(wait_until([&] {
    for (std::size_t i = 0; i < clients.size(); ++i) {
      pollfd ready{clients[i].fd(), POLLIN, 0};
      if (::poll(&ready, 1, 0) == 1) refused = i;
    }
    return refused < clients.size();
  }));
  const auto response = clients[refused].read_response();
  EXPECT_EQ(response.status, 503);
  EXPECT_NE(response.body.find("max_buffer_bytes (2000000 bytes)"), std::string::npos) << response.body;
  // The other connections continue, and their memory is released afterwards.
  for (std::size_t i = 0; i < clients.size(); ++i) {
    if (i == refused) continue;
    ASSERT_TRUE(clients[i].send(std::string(100'000, 'x')));
    EXPECT_EQ(clients[i].read_response().status, 200);
  }
  for (int i = 0; i < 5; ++i) {
    RawClient disconnected = server.client();
    ASSERT_TRUE(disconnected.send(head + std::string(900'000, 'x')));
  }
  EXPECT_TRUE(
      wait_until([&] { return server.client().request(head + std::string(1'000'000, 'x')).status == 200; }));
}

// ---- floods ----

// Sends `request` repeatedly and discards the responses, until the test is over.
void flood(const HttpServer& server, const std::string& request, const std::atomic<bool>& over) {
  std::string many;
  while (many.size() < (256u << 10)) many += request;
  RawClient client = server.client();
  const std::jthread reader([&](const std::stop_token& stop) {
    std::array<char, 65536> bytes;
    while (!stop.stop_requested() && ::recv(client.fd(), bytes.data(), bytes.size(), 0) > 0) continue;
  });
  while (!over && client.send(many)) continue;
  ::shutdown(client.fd(), SHUT_RDWR);
}

TEST(HttpLimitsTest, PipelinedRequestsDoNotStarveTheLoop) {
  HttpServer server;
  server.route("/x", respond_at_once);
  const std::string chunks = "POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string body;
  for (int i = 0; i < 100'000; ++i) body += "1\r\na\r\n";
  for (const std::string& request :
       {std::string("GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n"), chunks + body + "0\r\n\r\n"}) {
    std::atomic<bool> over = false;
    const std::jthread hostile([&] { flood(server, request, over); });
    ASSERT_TRUE(wait_until([&] { return server.connection_count() > 0; }));
    server.thread().run([&] {
      for (int i = 0; i < 4; ++i)
        server.thread().loop().grow_scratch_buffer();  // as a large body on another connection does
      server.thread().loop().turn_meter().reset();
    });
    RawClient other = server.client();
    // Fewer in slow builds: each call waits for turns of the flood.
    const int calls = test::kTurnFactor == 1 ? 200 : 20;
    for (int i = 0; i < calls; ++i) EXPECT_EQ(other.request(kGet).status, 200);
    const auto longest =
        server.thread().run([&] { return server.thread().loop().turn_meter().longest_turn(); });
    EXPECT_LT(longest, test::kTurnBound);
    over = true;
  }
}

// The test uses a Unix socket, because its data has arrived when send() returns: when the loop continues, all
// requests are readable.
TEST(HttpLimitsTest, QuietClientWaitsForOneRequestOfEachOtherConnection) {
  constexpr std::size_t kFloodCount = 20;
  // Requests of one connection that are handled in a turn while no other client waits. The loop may have
  // polled the first connection before it was blocked; then that connection gets a second turn before the
  // loop polls the others, and a third one after it has polled, because posted callbacks precede descriptors.
  constexpr std::size_t kRequestsPerTurn = 64;
  const test::TempDir directory;
  HttpServer server(ServerOptions(), "unix:" + (directory / "s"));
  std::vector<std::string> served;
  server.route("/x", [&](const ExchangePtr& exchange) {
    served.emplace_back(exchange->request().query());
    exchange->respond(Response::text(200, "x"));
  });
  std::vector<RawClient> floods;
  for (std::size_t i = 0; i < kFloodCount; ++i) floods.push_back(server.client());
  RawClient quiet = server.client();
  for (RawClient& client : floods) ASSERT_EQ(client.request(kGet).status, 200);
  ASSERT_EQ(quiet.request(kGet).status, 200);
  std::string many;
  for (int i = 0; i < 200; ++i) many += "GET /x?flood HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::promise<void> sent;
  server.thread().loop().post([&, all = sent.get_future().share()] {
    served.clear();
    all.wait();
  });
  for (RawClient& client : floods) ASSERT_TRUE(client.send(many));
  ASSERT_TRUE(quiet.send("GET /x?quiet HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  sent.set_value();
  EXPECT_EQ(quiet.read_response().status, 200);
  for (RawClient& client : floods) {
    for (int i = 0; i < 200; ++i) ASSERT_EQ(client.read_response().status, 200);
  }
  const auto before = std::ranges::find(served, "quiet") - served.begin();
  EXPECT_LE(static_cast<std::size_t>(before), 3 * kRequestsPerTurn + 2 * kFloodCount);
  EXPECT_EQ(served.size(), 200 * kFloodCount + 1);
}

TEST(HttpLimitsTest, RequestsBeyondOneTurnAreServedBeforeEndOfInput) {
  HttpServer server;
  server.route("/x", respond_at_once);
  RawClient client = server.client();
  std::string many;
  for (int i = 0; i < 500; ++i) many += kGet;
  ASSERT_TRUE(client.send(many));
  client.shutdown_output();
  for (int i = 0; i < 500; ++i) ASSERT_EQ(client.read_response().status, 200) << i;
}

TEST(HttpLimitsTest, IdleConnectionIsClosedAfterKeepAliveTimeout) {
  HttpServer server(with([](ServerOptions& o) { o.keep_alive_timeout = 500ms; }));
  server.route("/x", respond_at_once);
  RawClient client_without_request = server.client();
  RawClient client_with_request = server.client();
  EXPECT_EQ(client_with_request.request(kGet).status, 200);
  EXPECT_TRUE(client_without_request.closed_by_server());
  EXPECT_TRUE(client_with_request.closed_by_server());
}

TEST(HttpLimitsTest, RequestInProgressHasNoKeepAliveTimeout) {
  HttpServer server(
      with([](ServerOptions& o) { o.keep_alive_timeout = o.header_timeout = o.body_timeout = 500ms; }));
  ExchangePtr pending;
  server.route("/wait", [&](ExchangePtr exchange) { pending = std::move(exchange); });
  RawClient waiting = server.client();
  ASSERT_TRUE(waiting.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  RawClient idle = server.client();
  EXPECT_TRUE(idle.closed_by_server());  // the timeouts have passed
  RawClient another = server.client();
  EXPECT_TRUE(another.closed_by_server());
  server.thread().run([&] { std::exchange(pending, nullptr)->respond(Response::text(200, "late")); });
  EXPECT_EQ(waiting.read_response().body, "late");
}

TEST(HttpLimitsTest, ClientThatReadsNothingIsClosedAfterWriteStall) {
  HttpServer server(with([](ServerOptions& o) { o.write_stall = 200ms; }));
  server.route("/large", [](const ExchangePtr& exchange) {
    exchange->respond(Response::json(200, Bytes::adopt(std::string(64u << 20, 'x'))));
  });
  RawClient client = server.client();
  ASSERT_TRUE(client.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  EXPECT_TRUE(wait_until([&] { return server.connection_count() == 1; }));
  EXPECT_TRUE(wait_until([&] { return server.connection_count() == 0; }));
}

TEST(HttpLimitsTest, UnreadStreamIsClosedAtMaxBacklog) {
  HttpServer server(with([](ServerOptions& o) { o.max_stream_backlog_bytes = 1u << 20; }));
  ExchangePtr stream;
  std::atomic<bool> started = false;
  std::atomic<int> disconnected = 0;
  server.route("/stream", [&](ExchangePtr exchange) {
    exchange->start(Response(200));
    exchange->when_disconnected([&] { ++disconnected; });
    stream = std::move(exchange);
    started = true;
  });
  RawClient client = server.client();
  ASSERT_TRUE(client.send("GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  ASSERT_TRUE(wait_until([&] { return started.load(); }));
  const Bytes piece = Bytes::adopt(std::string(256u << 10, 'x'));
  for (int i = 0; i < 1000 && disconnected == 0; ++i) server.thread().run([&] { stream->write({piece}); });
  EXPECT_EQ(disconnected, 1);
  server.thread().run([&] {
    EXPECT_EQ(stream->backlog(), 0U);
    stream.reset();
  });
}

TEST(HttpLimitsTest, ReadAheadOfPipelinedRequestsIsLimited) {
  HttpServer server(with([](ServerOptions&) {}));
  ExchangePtr pending;
  std::atomic<bool> request_received = false;
  server.route("/wait", [&](ExchangePtr exchange) {
    pending = std::move(exchange);
    request_received = true;
  });
  server.route("/x", respond_at_once);
  RawClient client = server.client();
  ASSERT_TRUE(client.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  ASSERT_TRUE(wait_until([&] { return request_received.load(); }));
  const int flags = ::fcntl(client.fd(), F_GETFL);
  ::fcntl(client.fd(), F_SETFL, flags | O_NONBLOCK);
  std::size_t sent = 0;
  const std::size_t before = test::allocated_bytes();
  std::string many;
  while (many.size() < (1u << 20)) many += kGet;
  // Sends until the buffers of the kernel are full too.
  for (int quiet = 0; quiet < 50;) {
    const ssize_t n = ::send(client.fd(), many.data() + sent % kGet.size(), many.size() / 2, MSG_NOSIGNAL);
    if (n > 0) sent += static_cast<std::size_t>(n);
    quiet = n > 0 ? 0 : quiet + 1;
    if (n <= 0) std::this_thread::sleep_for(1ms);
    ASSERT_LT(sent, 1u << 30);
  }
  EXPECT_LT(test::allocated_bytes(), before + (8u << 20));
  ::fcntl(client.fd(), F_SETFL, flags);
  server.thread().run([&] { std::exchange(pending, nullptr)->respond(Response::text(200, "first")); });
  EXPECT_EQ(client.read_response().body, "first");
  for (std::size_t i = 0; i < sent / kGet.size(); ++i) ASSERT_EQ(client.read_response().body, "x");
}

// ---- many connections ------------------------------------------------------------------------------------

std::size_t descriptors_allowed() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

// Opens 10,000 connections, or as many as the limit of descriptors allows: clients and server are in one
// process.
TEST(HttpLimitsTest, ConnectionsOverMaxConnectionsGet503) {
  const std::size_t max_connections = std::min<std::size_t>(10'000, (descriptors_allowed() - 500) / 4);
  const std::size_t before = test::open_descriptor_count();
  {
    HttpServer server(with([&](ServerOptions& o) { o.max_connections = max_connections; }));
    server.route("/x", respond_at_once);
    std::vector<RawClient> clients;
    clients.reserve(2 * max_connections);
    for (std::size_t i = 0; i < max_connections; ++i) clients.push_back(server.client());
    ASSERT_TRUE(wait_until([&] { return server.connection_count() == max_connections; }));
    for (std::size_t i = 0; i < max_connections; ++i) {
      clients.push_back(server.client());
      if (i % 100 != 0) continue;
      ASSERT_EQ(clients[i].request(kGet).body, "x") << i;
    }
    for (std::size_t i = max_connections; i < 2 * max_connections; ++i) {
      const auto response = clients[i].read_response();
      ASSERT_EQ(response.status, 503) << i;
      ASSERT_NE(response.body.find("max_connections (" + std::to_string(max_connections) + ")"),
                std::string::npos);
      ASSERT_TRUE(clients[i].closed_by_server());
    }
    for (std::size_t i = 0; i < max_connections; ++i) ASSERT_EQ(clients[i].request(kGet).body, "x");
    // Closed connections make room for new ones.
    clients.clear();
    ASSERT_TRUE(wait_until([&] { return server.connection_count() == 0; }));
    EXPECT_EQ(server.client().request(kGet).body, "x");
  }
  EXPECT_EQ(test::open_descriptor_count(), before);
}

TEST(HttpLimitsTest, AcceptRecoversFromDescriptorExhaustionWithoutSpinning) {
  HttpServer server(with([](ServerOptions&) {}));
  server.route("/x", respond_at_once);
  RawClient first = server.client();
  ASSERT_EQ(first.request(kGet).body, "x");
  RawClient waiting = [&] {
    // The socket of the client gets the last descriptor; accepting it fails.
    UniqueFd probe(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const auto next = static_cast<rlim_t>(probe.get());
    probe.reset();
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const rlimit tight{next + 1, limit.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &tight);
    RawClient client = server.client();
    EXPECT_TRUE(client.send(kGet));
    EXPECT_EQ(first.request(kGet).body, "x");
    const std::clock_t before = std::clock();  // CPU time
    std::this_thread::sleep_for(300ms);
    EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 10);
    ::setrlimit(RLIMIT_NOFILE, &limit);
    return client;
  }();
  EXPECT_EQ(waiting.read_response().body, "x");
}

}  // namespace
}  // namespace fairlead::http
