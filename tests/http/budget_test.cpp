// Bodies, waiting requests and unread answers are charged to their client, and to all clients together.
#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <vector>

#include "http/byte_stream.hpp"
#include "http/raw_client.hpp"
#include "support/byte_budget.hpp"
#include "support/support.hpp"

namespace fairlead::http {
namespace {

using namespace std::chrono_literals;
using test::holds_soon;
using test::HttpServer;
using test::RawClient;
using ExchangePtr = std::shared_ptr<Exchange>;

ServerOptions with_budget(std::size_t client, std::size_t total) {
  ServerOptions options;
  options.header_timeout = options.body_timeout = options.keep_alive_timeout = options.write_stall = 1h;
  options.max_body_bytes = 10'000'000;
  options.budget = test::budget_of(client, total);
  return options;
}

std::string post(std::size_t body, std::size_t sent) {
  return "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body) + "\r\n\r\n" +
         std::string(sent, 'x');
}

std::size_t used(HttpServer& server, const ServerOptions& options) {
  return server.thread().run([&] { return options.budget->used(); });
}

// Keeps the exchanges it is given; they are answered, and dropped, on the loop.
class Keeper {
 public:
  explicit Keeper(HttpServer& server) : server_(server) {
    server.route("/x", [this](ExchangePtr exchange) { kept_.push_back(std::move(exchange)); });
  }
  ~Keeper() { answer_all(); }

  std::size_t count() {
    return server_.thread().run([&] { return kept_.size(); });
  }
  void answer_all() {
    server_.thread().run([&] {
      for (const ExchangePtr& exchange : kept_) exchange->respond(Response::text(200, "late"));
      kept_.clear();
    });
  }

 private:
  HttpServer& server_;
  std::vector<ExchangePtr> kept_;
};

// Sends most of a body of 1,900,000 bytes, waits until it is charged, and returns the answer to another such
// request.
RawClient::Answer answer_to_second_body(HttpServer& server, const ServerOptions& options, RawClient& first) {
  EXPECT_TRUE(first.send(post(1'900'000, 1'800'000)));
  EXPECT_TRUE(holds_soon([&] { return used(server, options) >= 1'800'000; }));
  RawClient second = server.client();
  EXPECT_TRUE(second.send(post(1'900'000, 900'000)));
  return second.answer();
}

TEST(HttpBudget, BodyIsRefusedWith429WhenItsClientIsOverItsBudget) {
  const ServerOptions options = with_budget(2'000'000, 100'000'000);
  HttpServer server(options, "127.0.0.1:0");
  server.route("/x", [](const ExchangePtr& exchange) { exchange->respond(Response::text(200, "x")); });
  RawClient first = server.client();
  const auto refused = answer_to_second_body(server, options, first);
  EXPECT_EQ(refused.status, 429);
  EXPECT_NE(refused.body.find("max_client_buffer_bytes (2000000 bytes)"), std::string::npos) << refused.body;
  ASSERT_TRUE(first.send(std::string(100'000, 'x')));
  EXPECT_EQ(first.answer().status, 200);
  EXPECT_EQ(used(server, options), 0u);
}

TEST(HttpBudget, BodyIsRefusedWith503WhenAllClientsAreOverTheTotal) {
  const ServerOptions options = with_budget(100'000'000, 2'000'000);
  HttpServer server(options);
  RawClient first = server.client();
  const auto refused = answer_to_second_body(server, options, first);
  EXPECT_EQ(refused.status, 503);
  EXPECT_NE(refused.body.find("max_buffer_bytes (2000000 bytes)"), std::string::npos) << refused.body;
}

// The reader has not buffered it, so where the next request begins is unknown: the connection ends.
TEST(HttpBudget, BodyInChunksIsRefusedBeforeItIsBuffered) {
  const ServerOptions options = with_budget(5'000, 100'000'000);
  HttpServer server(options);
  server.route("/x", [](const ExchangePtr& exchange) { exchange->respond(Response::text(200, "x")); });
  const auto chunked = [](const std::string& body) {
    return "POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + body + "0\r\n\r\n";
  };
  const auto refused = server.client().ask(chunked("1770\r\n" + std::string(6'000, 'x') + "\r\n"));
  EXPECT_EQ(refused.status, 429);
  EXPECT_TRUE(refused.has("Connection: close")) << refused.head;
  EXPECT_EQ(server.client().ask(chunked("3\r\nabc\r\n")).status, 200);
  EXPECT_EQ(used(server, options), 0u);
}

TEST(HttpBudget, ClientsAreCountedByAddressAndIn6ByPrefix) {
  EXPECT_EQ(network_of_remote("192.0.2.7:4711"), "192.0.2.7");
  EXPECT_EQ(network_of_remote("[::ffff:192.0.2.7]:4711"), "192.0.2.7");
  EXPECT_EQ(network_of_remote("[2001:db8:1:2:3:4:5:6]:1"), "2001:db8:1:2::/64");
  EXPECT_EQ(network_of_remote("[2001:db8:1:2:ffff::1]:2"), "2001:db8:1:2::/64");
  EXPECT_NE(network_of_remote("[2001:db8:1:3::1]:2"), network_of_remote("[2001:db8:1:2::1]:2"));
  EXPECT_EQ(network_of_remote("unix"), "unix");
}

TEST(HttpBudget, ClientsOfOtherAddressesHaveBudgetsOfTheirOwn) {
  const ServerOptions options = with_budget(1'000'000, 100'000'000);
  HttpServer server(options, "localhost:0");
  Keeper keeper(server);
  const std::string port = server.address().substr(server.address().rfind(':'));
  RawClient v4("127.0.0.1" + port);
  RawClient v6("[::1]" + port);
  ASSERT_TRUE(v4.send(post(900'000, 900'000)));
  ASSERT_TRUE(v6.send(post(900'000, 900'000)));
  EXPECT_TRUE(holds_soon([&] { return keeper.count() == 2; }));
  EXPECT_EQ(used(server, options), 1'800'000u);
}

TEST(HttpBudget, IdleConnectionOfAnAddressOverItsShareMakesRoomForAnotherAddress) {
  ServerOptions options = with_budget(1'000'000, 100'000'000);
  options.max_connections = 3;
  options.max_client_connections = 2;
  HttpServer server(options, "localhost:0");
  server.route("/x", [](const ExchangePtr& exchange) { exchange->respond(Response::text(200, "x")); });
  const std::string port = server.address().substr(server.address().rfind(':'));
  std::vector<RawClient> many;
  for (int i = 0; i < 3; ++i) {
    many.emplace_back("127.0.0.1" + port);
    EXPECT_EQ(many.back().ask(post(0, 0)).status, 200);
  }
  const auto refused = RawClient("127.0.0.1" + port).ask(post(0, 0));
  EXPECT_EQ(refused.status, 503);
  EXPECT_NE(refused.body.find("max_connections (3)"), std::string::npos) << refused.body;
  RawClient other("[::1]" + port);
  EXPECT_EQ(other.ask(post(0, 0)).status, 200);
  // The first address is not over its share any more.
  EXPECT_EQ(RawClient("[::1]" + port).ask(post(0, 0)).status, 503);
  EXPECT_EQ(other.ask(post(0, 0)).status, 200);
}

// Its requests take several turns. The other address connects between the first and the second.
TEST(HttpBudget, ConnectionWithRequestsThatWaitForItsNextTurnIsNotEvicted) {
  constexpr int kRequests = 600;
  ServerOptions options = with_budget(1'000'000, 100'000'000);
  options.max_connections = 3;
  options.max_client_connections = 2;
  HttpServer server(options, "localhost:0");
  const std::string port = server.address().substr(server.address().rfind(':'));
  std::optional<RawClient> other;
  int served = 0;
  server.route("/x", [&](const ExchangePtr& exchange) {
    if (++served == 1) exchange->loop().post([&] { other.emplace("[::1]" + port); });
    exchange->respond(Response::text(200, "x"));
  });
  server.route("/y", [](const ExchangePtr& exchange) { exchange->respond(Response::text(200, "y")); });
  const std::string ask_y = "GET /y HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back("127.0.0.1" + port);
    ASSERT_EQ(clients.back().ask(ask_y).status, 200);
  }
  std::string many;
  for (int i = 0; i < kRequests; ++i) many += post(0, 0);
  ASSERT_TRUE(clients[1].send(many));  // the first that eviction examines
  for (int i = 0; i < kRequests; ++i) ASSERT_EQ(clients[1].answer().status, 200) << i;
  ASSERT_TRUE(server.thread().run([&] { return other.has_value(); }));
  EXPECT_EQ(other->ask(ask_y).status, 200);
}

TEST(HttpBudget, RequestIsChargedUntilItIsAnswered) {
  const ServerOptions options = with_budget(1'000'000, 100'000'000);
  HttpServer server(options);
  Keeper keeper(server);
  RawClient waiting = server.client();
  ASSERT_TRUE(waiting.send(post(900'000, 900'000)));
  ASSERT_TRUE(holds_soon([&] { return keeper.count() == 1; }));
  EXPECT_EQ(used(server, options), 900'000u);

  // A small body that comes with its head in one piece is refused too, and the connection goes on.
  RawClient other = server.client();
  const auto refused = other.ask(post(150'000, 150'000));
  EXPECT_EQ(refused.status, 429) << refused.body;
  EXPECT_NE(refused.body.find("resource exhausted"), std::string::npos) << refused.body;
  EXPECT_EQ(keeper.count(), 1u);

  keeper.answer_all();
  EXPECT_EQ(waiting.answer().status, 200);
  EXPECT_EQ(used(server, options), 0u);
}

TEST(HttpBudget, RequestsReadAheadAreChargedAndOverTheBudgetTheConnectionEnds) {
  const ServerOptions options = with_budget(20'000, 100'000'000);
  HttpServer server(options);
  Keeper keeper(server);
  RawClient client = server.client();
  ASSERT_TRUE(client.send(post(0, 0)));
  ASSERT_TRUE(holds_soon([&] { return keeper.count() == 1; }));
  ASSERT_TRUE(client.send(std::string(10'000, 'x')));
  EXPECT_TRUE(holds_soon([&] { return used(server, options) == 10'000; }));
  ASSERT_TRUE(client.send(std::string(15'000, 'x')));
  EXPECT_TRUE(holds_soon([&] { return server.connections() == 0; }));
  EXPECT_EQ(used(server, options), 0u);
}

TEST(HttpBudget, RequestsThatArriveWithTheFirstAreCharged) {
  const ServerOptions options = with_budget(20'000, 100'000'000);
  HttpServer server(options);
  Keeper keeper(server);
  RawClient client = server.client();
  ASSERT_TRUE(client.send(post(0, 0) + std::string(10'000, 'x')));
  EXPECT_TRUE(holds_soon([&] { return used(server, options) == 10'000; }));
  RawClient greedy = server.client();
  ASSERT_TRUE(greedy.send(post(0, 0) + std::string(15'000, 'x')));
  EXPECT_TRUE(holds_soon([&] { return server.connections() == 1; }));
  EXPECT_EQ(used(server, options), 10'000u);
}

// A client that always has requests waiting behind the present one.
TEST(HttpBudget, RequestsThatWereServedAreNotChargedAsReadAhead) {
  const ServerOptions options = with_budget(150'000, 100'000'000);
  HttpServer server(options);
  server.route("/x", [](const ExchangePtr& exchange) {
    exchange->loop().post([exchange] { exchange->respond(Response::text(200, "x")); });
  });
  const std::string request =
      "GET /x HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(3'000, 'x') + "\r\n\r\n";
  RawClient client = server.client();
  const std::jthread sending([&] {
    for (int i = 0; i < 500; ++i) static_cast<void>(client.send(request));
  });
  for (int i = 0; i < 500; ++i) ASSERT_EQ(client.answer().status, 200) << i;
  EXPECT_TRUE(holds_soon([&] { return used(server, options) == 0; }));
}

std::string long_head(std::size_t bytes) {
  return "GET /x HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(bytes, 'x');
}

TEST(HttpBudget, HeadThatHasNotArrivedCompletelyIsCharged) {
  const ServerOptions options = with_budget(40'000, 100'000'000);
  HttpServer server(options);
  server.route("/x", [](const ExchangePtr& exchange) { exchange->respond(Response::text(200, "x")); });
  RawClient first = server.client();
  ASSERT_TRUE(first.send(long_head(25'000)));
  EXPECT_TRUE(holds_soon([&] { return used(server, options) >= 25'000; }));
  const auto refused = server.client().ask(long_head(25'000));
  EXPECT_EQ(refused.status, 429);
  EXPECT_NE(refused.body.find("max_client_buffer_bytes (40000 bytes)"), std::string::npos) << refused.body;
  EXPECT_EQ(first.ask("\r\n\r\n").status, 200);
  EXPECT_EQ(used(server, options), 0u);
}

// Each field takes more memory than it takes bytes on the wire.
TEST(HttpBudget, HeadIsChargedWithItsMemoryUntilTheRequestIsAnswered) {
  const ServerOptions options = with_budget(1'000'000, 100'000'000);
  HttpServer server(options);
  Keeper keeper(server);
  std::string head = "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n";
  for (int i = 0; i < 5'000; ++i) head += "a:\r\n";
  RawClient client = server.client();
  ASSERT_TRUE(client.send(head + "\r\nx"));
  EXPECT_TRUE(holds_soon([&] { return used(server, options) > 5'000 * 16; }));
  ASSERT_TRUE(client.send("x"));
  ASSERT_TRUE(holds_soon([&] { return keeper.count() == 1; }));
  EXPECT_GT(used(server, options), 5'000u * 16);
  keeper.answer_all();
  EXPECT_EQ(client.answer().status, 200);
  EXPECT_EQ(used(server, options), 0u);
}

std::string many_fields() {
  std::string head = "GET /x HTTP/1.1\r\nHost: localhost\r\n";
  for (int i = 0; i < 5'000; ++i) head += "a:\r\n";
  return head;
}

TEST(HttpBudget, IdleConnectionsKeepNoMemoryOfTheirRequests) {
  const ServerOptions options = with_budget(1'000'000, 100'000'000);
  HttpServer server(options);
  server.route("/x", [](const ExchangePtr& exchange) { exchange->respond(Response::text(200, "x")); });
  const std::string request = many_fields() + "\r\n";
  std::vector<RawClient> clients;
  for (int i = 0; i < 100; ++i) clients.push_back(server.client());
  for (RawClient& client : clients) ASSERT_EQ(client.ask(post(0, 0)).status, 200);
  const std::size_t before = test::allocated_bytes();
  // The second request finds the memory that the first has left to its connection or to the server.
  for (RawClient& client : clients) {
    ASSERT_EQ(client.ask(request).status, 200);
    ASSERT_EQ(client.ask(request + post(0, 0)).status, 200);
    ASSERT_EQ(client.answer().status, 200);
  }
  EXPECT_LT(test::allocated_bytes(), before + clients.size() * 8'000 + 1'000'000);
}

TEST(HttpBudget, RefusedRequestKeepsNoMemoryWhileItsConnectionLingers) {
  const ServerOptions options = with_budget(1'000'000, 100'000'000);
  HttpServer server(options);
  std::vector<RawClient> clients;
  for (int i = 0; i < 100; ++i) clients.push_back(server.client());
  EXPECT_TRUE(holds_soon([&] { return server.connections() == clients.size(); }));
  const std::size_t before = test::allocated_bytes();
  for (RawClient& client : clients) ASSERT_EQ(client.ask(many_fields() + "no field\r\n\r\n").status, 400);
  EXPECT_LT(test::allocated_bytes(), before + clients.size() * 8'000 + 1'000'000);
}

TEST(HttpBudget, RequestOfAClientThatHasGoneIsNoLongerCharged) {
  const ServerOptions options = with_budget(1'000'000, 100'000'000);
  HttpServer server(options);
  Keeper keeper(server);
  {
    RawClient gone = server.client();
    ASSERT_TRUE(gone.send(post(900'000, 900'000)));
    ASSERT_TRUE(holds_soon([&] { return keeper.count() == 1; }));
  }
  EXPECT_TRUE(holds_soon([&] { return used(server, options) == 0; }));
}

TEST(HttpBudget, AnswerIsReplacedByARefusalWhenUnreadAnswersFillTheBudget) {
  const ServerOptions options = with_budget(40'000'000, 100'000'000);
  HttpServer server(options);
  const Bytes large = Bytes::adopt(std::string(30'000'000, 'x'));
  server.route("/x", [large](const ExchangePtr& exchange) {
    Response response(200);
    response.body.push_back(large);
    exchange->respond(std::move(response));
  });
  RawClient deaf = server.client();
  ASSERT_TRUE(deaf.send(post(0, 0)));
  ASSERT_TRUE(holds_soon([&] { return used(server, options) > 10'000'000; }));
  const auto refused = server.client().ask(post(0, 0));
  EXPECT_EQ(refused.status, 429);
  EXPECT_NE(refused.body.find("max_client_buffer_bytes (40000000 bytes)"), std::string::npos)
      << refused.body.substr(0, 200);
  // What is read is free again.
  EXPECT_EQ(deaf.answer().body.size(), large.size());
  EXPECT_TRUE(holds_soon([&] { return used(server, options) == 0; }));
}

TEST(HttpBudget, StreamIsClosedWhenItsClientDoesNotReadAndTheBudgetIsFull) {
  ServerOptions options = with_budget(10'000'000, 100'000'000);
  options.max_stream_backlog_bytes = 1'000'000'000;
  HttpServer server(options);
  ExchangePtr stream;
  server.route("/x", [&](ExchangePtr exchange) { stream = std::move(exchange); });
  RawClient deaf = server.client();
  ASSERT_TRUE(deaf.send(post(0, 0)));
  ASSERT_TRUE(holds_soon([&] { return server.thread().run([&] { return stream != nullptr; }); }));
  server.thread().run([&] { stream->start(Response(200)); });
  const Bytes part = Bytes::adopt(std::string(1'000'000, 'x'));
  const bool closed = server.thread().run([&] {
    for (int i = 0; i < 60 && !stream->gone(); ++i) stream->write({part});
    return stream->gone();
  });
  EXPECT_TRUE(closed);
  server.thread().run([&] { stream.reset(); });
  EXPECT_TRUE(holds_soon([&] { return used(server, options) == 0; }));
}

}  // namespace
}  // namespace fairlead::http
