// R8.2: everything a client can take its time or its fill with has a bound.
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
using test::holds_soon;
using test::HttpServer;
using test::RawClient;
using ExchangePtr = std::shared_ptr<Exchange>;

constexpr std::string_view kGet = "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n";

void answer_at_once(const ExchangePtr& exchange) {
  exchange->respond(Response::text(200, "x"));
}

// A server whose clocks are all long but for one.
template <class Change>
ServerOptions with(Change change) {
  ServerOptions options;
  options.header_timeout = options.body_timeout = options.keep_alive_timeout = options.write_stall = 1h;
  change(options);
  return options;
}

TEST(HttpLimits, AHeadThatDripsIsEndedByHeaderTimeout) {
  HttpServer server(with([](ServerOptions& o) { o.header_timeout = 200ms; }));
  server.route("/x", answer_at_once);
  RawClient slow = server.client();
  ASSERT_TRUE(slow.send("GET /x HTTP/1.1\r\nHost: local"));
  // Each byte is in time for an idle clock; the head as a whole is not.
  for (bool open = true; open;) {
    std::this_thread::sleep_for(10ms);
    open = slow.send("a");
    pollfd ready{slow.fd(), POLLIN, 0};
    if (::poll(&ready, 1, 0) > 0) break;
  }
  const auto answer = slow.answer();
  EXPECT_EQ(answer.status, 408);
  EXPECT_NE(answer.body.find("header_timeout (200 ms)"), std::string::npos);
  EXPECT_EQ(server.client().ask(kGet).body, "x");
}

TEST(HttpLimits, ABodyThatStopsIsEndedByBodyTimeout) {
  HttpServer server(with([](ServerOptions& o) { o.body_timeout = 100ms; }));
  RawClient client = server.client();
  ASSERT_TRUE(client.send("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf"));
  const auto answer = client.answer();
  EXPECT_EQ(answer.status, 408);
  EXPECT_NE(answer.body.find("body_timeout (100 ms)"), std::string::npos);
}

// Sends `bytes` of a body again and again, each time after `pause`, until there is an answer.
RawClient::Answer drip_body(HttpServer& server, std::string_view bytes, std::chrono::milliseconds pause) {
  RawClient client = server.client();
  client.send("POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 1000; ++i) {
    client.send(bytes);
    pollfd ready{client.fd(), POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(pause.count())) == 1) return client.answer();
  }
  return {};
}

TEST(HttpLimits, BodyThatDripsGets408) {
  HttpServer server(with([](ServerOptions& o) {
    o.body_rate_window = 200ms;
    o.min_body_bytes_per_second = 10'000;
  }));
  server.route("/x", answer_at_once);
  // Each byte is in time for body_timeout.
  const auto drip = drip_body(server, "1\r\na\r\n", 10ms);
  EXPECT_EQ(drip.status, 408);
  EXPECT_NE(drip.body.find("min_body_bytes_per_second (10000) over body_rate_window (200 ms)"),
            std::string::npos)
      << drip.body;
  EXPECT_TRUE(holds_soon([&] { return server.connections() == 0; }));
}

// What is not the body, such as extensions of chunks, does not count.
TEST(HttpLimits, BytesBesideTheBodyAreNoProgress) {
  HttpServer server(with([](ServerOptions& o) {
    o.body_rate_window = 200ms;
    o.min_body_bytes_per_second = 10'000;
  }));
  server.route("/x", answer_at_once);
  EXPECT_EQ(drip_body(server, "1;" + std::string(500, 'x') + "\r\na\r\n", 10ms).status, 408);
}

TEST(HttpLimits, BodyThatKeepsTheRateIsTakenHoweverLongItIs) {
  HttpServer server(with([](ServerOptions& o) {
    o.body_rate_window = 1s;
    o.min_body_bytes_per_second = 100;
  }));
  server.route("/x", answer_at_once);
  RawClient client = server.client();
  ASSERT_TRUE(client.send("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000\r\n\r\n"));
  for (int i = 0; i < 50; ++i) {  // two and a half seconds: more than two windows
    ASSERT_TRUE(client.send(std::string(1000, 'x')));
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_EQ(client.answer().status, 200);
}

// A body behind another one on the connection has a window of its own.
TEST(HttpLimits, RateOfABodyIsNotThatOfTheOneBefore) {
  HttpServer server(with([](ServerOptions& o) {
    o.body_rate_window = 2s;
    o.min_body_bytes_per_second = 100;
  }));
  server.route("/x", answer_at_once);
  RawClient client = server.client();
  const std::string head = "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60\r\n\r\n";
  ASSERT_TRUE(client.send(head));
  std::this_thread::sleep_for(1200ms);
  ASSERT_TRUE(client.send(std::string(60, 'x') + head));
  EXPECT_EQ(client.answer().status, 200);
  std::this_thread::sleep_for(1200ms);
  ASSERT_TRUE(client.send(std::string(60, 'x')));
  EXPECT_EQ(client.answer().status, 200);
}

TEST(HttpLimits, IncompleteBodiesOfAllConnectionsAreBoundedTogether) {
  HttpServer server(with([](ServerOptions& o) {
    o.max_body_bytes = 1'000'000;
    ByteBudgetLimits limits;
    limits.max_buffer_bytes = 2'000'000;
    o.budget = ByteBudget::create(limits);
  }));
  server.route("/x", answer_at_once);
  const std::string head = "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n";
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(server.client());
    ASSERT_TRUE(clients.back().send(head + std::string(900'000, 'x')));
  }
  std::size_t refused = 3;
  ASSERT_TRUE(holds_soon([&] {
    for (std::size_t i = 0; i < clients.size(); ++i) {
      pollfd ready{clients[i].fd(), POLLIN, 0};
      if (::poll(&ready, 1, 0) == 1) refused = i;
    }
    return refused < clients.size();
  }));
  const auto answer = clients[refused].answer();
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.body.find("max_buffer_bytes (2000000 bytes)"), std::string::npos) << answer.body;
  // The others go on, and what they held is free again.
  for (std::size_t i = 0; i < clients.size(); ++i) {
    if (i == refused) continue;
    ASSERT_TRUE(clients[i].send(std::string(100'000, 'x')));
    EXPECT_EQ(clients[i].answer().status, 200);
  }
  for (int i = 0; i < 5; ++i) {
    RawClient gone = server.client();
    ASSERT_TRUE(gone.send(head + std::string(900'000, 'x')));
  }
  EXPECT_TRUE(
      holds_soon([&] { return server.client().ask(head + std::string(1'000'000, 'x')).status == 200; }));
}

// ---- floods ----

// Sends `request` over and over and reads the answers away, until the test is over.
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

TEST(HttpLimits, PipelinedRequestsDoNotStarveTheLoop) {
  HttpServer server;
  server.route("/x", answer_at_once);
  const std::string chunks = "POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string body;
  for (int i = 0; i < 100'000; ++i) body += "1\r\na\r\n";
  for (const std::string& request :
       {std::string("GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n"), chunks + body + "0\r\n\r\n"}) {
    std::atomic<bool> over = false;
    const std::jthread hostile([&] { flood(server, request, over); });
    ASSERT_TRUE(holds_soon([&] { return server.connections() > 0; }));
    server.thread().run([&] {
      for (int i = 0; i < 4; ++i) server.thread().loop().grow_scratch();  // as a large body elsewhere does
      server.thread().loop().turns().reset();
    });
    RawClient other = server.client();
    // Fewer where the build is slower: each of them waits for turns of the flood.
    const int calls = test::kTurnFactor == 1 ? 200 : 20;
    for (int i = 0; i < calls; ++i) EXPECT_EQ(other.ask(kGet).status, 200);
    const auto longest = server.thread().run([&] { return server.thread().loop().turns().longest(); });
    EXPECT_LT(longest, test::kTurnBound);
    over = true;
  }
}

// What is sent on a Unix socket has arrived when send() returns: all requests are there when the loop looks
// at them.
TEST(HttpLimits, RequestOfAQuietClientWaitsForOneRequestOfEachOtherConnection) {
  constexpr std::size_t kFloods = 20;
  // Of a connection while no other waits. The loop may have noticed the first one before it is held up: that
  // one has a second turn before the loop notices the others.
  constexpr std::size_t kOneTurn = 64;
  const test::TempDir directory;
  HttpServer server(ServerOptions(), "unix:" + (directory / "s"));
  std::vector<std::string> served;
  server.route("/x", [&](const ExchangePtr& exchange) {
    served.emplace_back(exchange->request().query());
    exchange->respond(Response::text(200, "x"));
  });
  std::vector<RawClient> floods;
  for (std::size_t i = 0; i < kFloods; ++i) floods.push_back(server.client());
  RawClient quiet = server.client();
  for (RawClient& client : floods) ASSERT_EQ(client.ask(kGet).status, 200);
  ASSERT_EQ(quiet.ask(kGet).status, 200);
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
  EXPECT_EQ(quiet.answer().status, 200);
  for (RawClient& client : floods) {
    for (int i = 0; i < 200; ++i) ASSERT_EQ(client.answer().status, 200);
  }
  const auto before = std::ranges::find(served, "quiet") - served.begin();
  EXPECT_LE(static_cast<std::size_t>(before), 2 * kOneTurn + 2 * kFloods);
  EXPECT_EQ(served.size(), 200 * kFloods + 1);
}

TEST(HttpLimits, RequestsBeyondATurnAreAnsweredBeforeTheEndOfTheInputCounts) {
  HttpServer server;
  server.route("/x", answer_at_once);
  RawClient client = server.client();
  std::string many;
  for (int i = 0; i < 500; ++i) many += kGet;
  ASSERT_TRUE(client.send(many));
  client.shut_output();
  for (int i = 0; i < 500; ++i) ASSERT_EQ(client.answer().status, 200) << i;
}

TEST(HttpLimits, AnIdleConnectionIsClosedWithoutAWord) {
  HttpServer server(with([](ServerOptions& o) { o.keep_alive_timeout = 500ms; }));
  server.route("/x", answer_at_once);
  RawClient never_asked = server.client();
  RawClient asked_once = server.client();
  EXPECT_EQ(asked_once.ask(kGet).status, 200);
  EXPECT_TRUE(never_asked.ended());
  EXPECT_TRUE(asked_once.ended());
}

TEST(HttpLimits, ARequestUnderWayHasNoKeepAliveTimeout) {
  HttpServer server(
      with([](ServerOptions& o) { o.keep_alive_timeout = o.header_timeout = o.body_timeout = 500ms; }));
  ExchangePtr held;
  server.route("/wait", [&](ExchangePtr exchange) { held = std::move(exchange); });
  RawClient waiting = server.client();
  ASSERT_TRUE(waiting.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  RawClient idle = server.client();
  EXPECT_TRUE(idle.ended());  // the clocks have run
  RawClient another = server.client();
  EXPECT_TRUE(another.ended());
  server.thread().run([&] { std::exchange(held, nullptr)->respond(Response::text(200, "late")); });
  EXPECT_EQ(waiting.answer().body, "late");
}

TEST(HttpLimits, AClientThatReadsNothingIsGivenUpAfterWriteStall) {
  HttpServer server(with([](ServerOptions& o) { o.write_stall = 200ms; }));
  server.route("/large", [](const ExchangePtr& exchange) {
    exchange->respond(Response::json(200, Bytes::adopt(std::string(64u << 20, 'x'))));
  });
  RawClient client = server.client();
  ASSERT_TRUE(client.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  EXPECT_TRUE(holds_soon([&] { return server.connections() == 1; }));
  EXPECT_TRUE(holds_soon([&] { return server.connections() == 0; }));
}

TEST(HttpLimits, AStreamNobodyReadsIsCutAtItsBacklog) {
  HttpServer server(with([](ServerOptions& o) { o.max_stream_backlog_bytes = 1u << 20; }));
  ExchangePtr stream;
  std::atomic<bool> started = false;
  std::atomic<int> gone = 0;
  server.route("/stream", [&](ExchangePtr exchange) {
    exchange->start(Response(200));
    exchange->when_gone([&] { ++gone; });
    stream = std::move(exchange);
    started = true;
  });
  RawClient client = server.client();
  ASSERT_TRUE(client.send("GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  ASSERT_TRUE(holds_soon([&] { return started.load(); }));
  const Bytes piece = Bytes::adopt(std::string(256u << 10, 'x'));
  for (int i = 0; i < 1000 && gone == 0; ++i) server.thread().run([&] { stream->write({piece}); });
  EXPECT_EQ(gone, 1);
  server.thread().run([&] {
    EXPECT_EQ(stream->backlog(), 0U);
    stream.reset();
  });
}

TEST(HttpLimits, PipelinedRequestsAreNotReadWithoutEnd) {
  HttpServer server(with([](ServerOptions&) {}));
  ExchangePtr held;
  std::atomic<bool> asked = false;
  server.route("/wait", [&](ExchangePtr exchange) {
    held = std::move(exchange);
    asked = true;
  });
  server.route("/x", answer_at_once);
  RawClient client = server.client();
  ASSERT_TRUE(client.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  ASSERT_TRUE(holds_soon([&] { return asked.load(); }));
  const int flags = ::fcntl(client.fd(), F_GETFL);
  ::fcntl(client.fd(), F_SETFL, flags | O_NONBLOCK);
  std::size_t sent = 0;
  const std::size_t before = test::allocated_bytes();
  std::string many;
  while (many.size() < (1u << 20)) many += kGet;
  // Until the buffers of the kernel are full, too.
  for (int quiet = 0; quiet < 50;) {
    const ssize_t n = ::send(client.fd(), many.data() + sent % kGet.size(), many.size() / 2, MSG_NOSIGNAL);
    if (n > 0) sent += static_cast<std::size_t>(n);
    quiet = n > 0 ? 0 : quiet + 1;
    if (n <= 0) std::this_thread::sleep_for(1ms);
    ASSERT_LT(sent, 1u << 30);
  }
  EXPECT_LT(test::allocated_bytes(), before + (8u << 20));
  ::fcntl(client.fd(), F_SETFL, flags);
  server.thread().run([&] { std::exchange(held, nullptr)->respond(Response::text(200, "first")); });
  EXPECT_EQ(client.answer().body, "first");
  for (std::size_t i = 0; i < sent / kGet.size(); ++i) ASSERT_EQ(client.answer().body, "x");
}

// ---- many connections ------------------------------------------------------------------------------------

std::size_t descriptors_allowed() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

// Both sides are in one process, so as many of the 10,000 as there are descriptors for.
TEST(HttpLimits, NewcomersOverMaxConnectionsAreToldAndOthersServed) {
  const std::size_t most = std::min<std::size_t>(10'000, (descriptors_allowed() - 500) / 4);
  const std::size_t before = test::open_descriptors();
  {
    HttpServer server(with([&](ServerOptions& o) { o.max_connections = most; }));
    server.route("/x", answer_at_once);
    std::vector<RawClient> clients;
    clients.reserve(2 * most);
    for (std::size_t i = 0; i < most; ++i) clients.push_back(server.client());
    ASSERT_TRUE(holds_soon([&] { return server.connections() == most; }));
    for (std::size_t i = 0; i < most; ++i) {
      clients.push_back(server.client());
      if (i % 100 != 0) continue;
      ASSERT_EQ(clients[i].ask(kGet).body, "x") << i;
    }
    for (std::size_t i = most; i < 2 * most; ++i) {
      const auto answer = clients[i].answer();
      ASSERT_EQ(answer.status, 503) << i;
      ASSERT_NE(answer.body.find("max_connections (" + std::to_string(most) + ")"), std::string::npos);
      ASSERT_TRUE(clients[i].ended());
    }
    for (std::size_t i = 0; i < most; ++i) ASSERT_EQ(clients[i].ask(kGet).body, "x");
    // A place that becomes free is given away again.
    clients.clear();
    ASSERT_TRUE(holds_soon([&] { return server.connections() == 0; }));
    EXPECT_EQ(server.client().ask(kGet).body, "x");
  }
  EXPECT_EQ(test::open_descriptors(), before);
}

TEST(HttpLimits, BeingOutOfDescriptorsDoesNotSpinAndPasses) {
  HttpServer server(with([](ServerOptions&) {}));
  server.route("/x", answer_at_once);
  RawClient first = server.client();
  ASSERT_EQ(first.ask(kGet).body, "x");
  RawClient waiting = [&] {
    // The client's own socket is the last that can be had; accepting it fails.
    UniqueFd probe(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const auto next = static_cast<rlim_t>(probe.get());
    probe.reset();
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const rlimit tight{next + 1, limit.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &tight);
    RawClient client = server.client();
    EXPECT_TRUE(client.send(kGet));
    EXPECT_EQ(first.ask(kGet).body, "x");
    const std::clock_t before = std::clock();  // of the processor, not of the wall
    std::this_thread::sleep_for(300ms);
    EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 10);
    ::setrlimit(RLIMIT_NOFILE, &limit);
    return client;
  }();
  EXPECT_EQ(waiting.answer().body, "x");
}

}  // namespace
}  // namespace fairlead::http
