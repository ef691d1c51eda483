// Requests and unread responses are charged to their client, and to the total of all clients.
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
using test::HttpServer;
using test::RawClient;
using test::wait_until;
using ExchangePtr = std::shared_ptr<Exchange>;

ServerOptions with_budget(std::size_t client, std::size_t total) {
  ServerOptions options;
  options.header_timeout = options.body_timeout = options.keep_alive_timeout = options.write_stall = 1h;
  options.max_body_bytes = 10'000'000;
  options.budget = test::make_budget(client, total);
  return options;
}

std::string post(std::size_t body, std::size_t sent) {
  return "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body) + "\r\n\r\n" +
         std::string(sent, 'x');
}

std::size_t used(HttpServer& server, const ServerOptions& options) {
  return server.thread().run([&] { return options.budget->used_bytes(); });
}

// Collects the exchanges of a route without responding. respond_to_all() responds to them, on the loop
// thread.
class PendingExchanges {
 public:
  explicit PendingExchanges(HttpServer& server) : server_(server) {
    server.route("/x", [this](ExchangePtr exchange) { exchanges_.push_back(std::move(exchange)); });
  }
  ~PendingExchanges() { respond_to_all(); }

  std::size_t count() {
    return server_.thread().run([&] { return exchanges_.size(); });
  }
  void respond_to_all() {
    server_.thread().run([&] {
      for (const ExchangePtr& exchange : exchanges_) exchange->respond(Response::text(200, "late"));
      exchanges_.clear();
    });
  }

 private:
  HttpServer& server_;
  std::vector<ExchangePtr> exchanges_;
};

// Sends most of a body of 1,900,000 bytes on `first`, and waits until it is charged. Then sends a part of
// such a body on another connection, and returns the response on that connection.
RawClient::Response response_to_second_body(HttpServer& server, const ServerOptions& options,
                                            RawClient& first) {
  EXPECT_TRUE(first.send(post(1'900'000, 1'800'000)));
  EXPECT_TRUE(wait_until([&] { return used(server, options) >= 1'800'000; }));
  RawClient second = server.client();
  EXPECT_TRUE(second.send(post(1'900'000, 900'000)));
  return second.read_response();
}

TEST(HttpBudgetTest, BodyGets429WhenClientIsOverBudget) {
  const ServerOptions options = with_budget(2'000'000, 100'000'000);
  HttpServer server(options, "127.0.0.1:0");
  server.route("/x", [](const ExchangePtr& exchange) { exchange->respond(Response::text(200, "x")); });
  RawClient first = server.client();
  const auto rejected = response_to_second_body(server, options, first);
  EXPECT_EQ(rejected.status, 429);
  EXPECT_NE(rejected.body.find("max_client_buffer_bytes (2000000 bytes)"), std::string::npos)
      << rejected.body;
  ASSERT_TRUE(first.send(std::string(100'000, 'x')));
  EXPECT_EQ(first.read_response().status, 200);
  EXPECT_EQ(used(server, options), 0u);
}

TEST(HttpBudgetTest, BodyGets503WhenAllClientsAreOverTotalBudget) {
  const ServerOptions options = with_budget(100'000'000, 2'000'000);
  HttpServer server(options);
  RawClient first = server.client();
  const auto rejected = response_to_second_body(server, options, first);
  EXPECT_EQ(rejected.status, 503);
  EXPECT_NE(rejected.body.find("max_buffer_bytes (2000000 bytes)"), std::string::npos) << rejected.body;
}

// The body was not read, so it is unknown where the next request begins: the connection is closed.
TEST(HttpBudgetTest, ChunkedBodyIsRejectedBeforeBuffering) {
  const ServerOptions options = with_budget(5'000, 100'000'000);
  HttpServer server(options);
  server.route("/x", [](const ExchangePtr& exchange) { exchange->respond(Response::text(200, "x")); });
  const auto chunked = [](const std::string& body) {
    return "POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + body + "0\r\n\r\n";
  };
  const auto rejected = server.client().request(chunked("1770\r\n" + std::string(6'000, 'x') + "\r\n"));
  EXPECT_EQ(rejected.status, 429);
  EXPECT_TRUE(rejected.has("Connection: close")) << rejected.head;
  EXPECT_EQ(server.client().request(chunked("3\r\nabc\r\n")).status, 200);
  EXPECT_EQ(used(server, options), 0u);
}

TEST(HttpBudgetTest, NetworkIsIpv4AddressOrIpv6Prefix) {
  EXPECT_EQ(client_network("192.0.2.7:4711"), "192.0.2.7");
  EXPECT_EQ(client_network("[::ffff:192.0.2.7]:4711"), "192.0.2.7");
  EXPECT_EQ(client_network("[2001:db8:1:2:3:4:5:6]:1"), "2001:db8:1:2::/64");
  EXPECT_EQ(client_network("[2001:db8:1:2:ffff::1]:2"), "2001:db8:1:2::/64");
  EXPECT_NE(client_network("[2001:db8:1:3::1]:2"), client_network("[2001:db8:1:2::1]:2"));
  EXPECT_EQ(client_network("unix"), "unix");
}

TEST(HttpBudgetTest, ClientsOfDifferentAddressesHaveSeparateBudgets) {
  const ServerOptions options = with_budget(1'000'000, 100'000'000);
  HttpServer server(options, "localhost:0");
  PendingExchanges pending(server);
  const std::string port = server.address().substr(server.address().rfind(':'));
  RawClient v4("127.0.0.1" + port);
  RawClient v6("[::1]" + port);
  ASSERT_TRUE(v4.send(post(900'000, 900'000)));
  ASSERT_TRUE(v6.send(post(900'000, 900'000)));
  EXPECT_TRUE(wait_until([&] { return pending.count() == 2; }));
  EXPECT_EQ(used(server, options), 1'800'000u);
}

TEST(HttpBudgetTest, IdleConnectionOfAddressOverLimitIsEvictedForAnotherAddress) {
  ServerOptions options = with_budget(1'000'000, 100'000'000);
  options.max_connections = 3;
  options.max_client_connections = 2;
  HttpServer server(options, "localhost:0");
  server.route("/x", [](const ExchangePtr& exchange) { exchange->respond(Response::text(200, "x")); });
  const std::string port = server.address().substr(server.address().rfind(':'));
  std::vector<RawClient> many;
  for (int i = 0; i < 3; ++i) {
    many.emplace_back("127.0.0.1" + port);
    EXPECT_EQ(many.back().request(post(0, 0)).status, 200);
  }
  const auto rejected = RawClient("127.0.0.1" + port).request(post(0, 0));
  EXPECT_EQ(rejected.status, 503);
  EXPECT_NE(rejected.body.find("max_connections (3)"), std::string::npos) << rejected.body;
  RawClient other("[::1]" + port);
  EXPECT_EQ(other.request(post(0, 0)).status, 200);
  // The first address is no longer over its limit.
  EXPECT_EQ(RawClient("[::1]" + port).request(post(0, 0)).status, 503);
  EXPECT_EQ(other.request(post(0, 0)).status, 200);
}

// The server handles the requests of the connection in several turns. The other address connects between the
// first and the second turn.
TEST(HttpBudgetTest, ConnectionWithPendingRequestsIsNotEvicted) {
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
  const std::string get_y = "GET /y HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back("127.0.0.1" + port);
    ASSERT_EQ(clients.back().request(get_y).status, 200);
  }
  std::string many;
  for (int i = 0; i < kRequests; ++i) many += post(0, 0);
  ASSERT_TRUE(clients[1].send(many));  // the connection that the eviction examines first
  for (int i = 0; i < kRequests; ++i) ASSERT_EQ(clients[1].read_response().status, 200) << i;
  ASSERT_TRUE(server.thread().run([&] { return other.has_value(); }));
  EXPECT_EQ(other->request(get_y).status, 200);
}

TEST(HttpBudgetTest, RequestIsChargedUntilResponse) {
  const ServerOptions options = with_budget(1'000'000, 100'000'000);
  HttpServer server(options);
  PendingExchanges pending(server);
  RawClient waiting = server.client();
  ASSERT_TRUE(waiting.send(post(900'000, 900'000)));
  ASSERT_TRUE(wait_until([&] { return pending.count() == 1; }));
  EXPECT_EQ(used(server, options), 900'000u);

  // A small body that arrives with its head is rejected too, and the connection stays open.
  RawClient other = server.client();
  const auto rejected = other.request(post(150'000, 150'000));
  EXPECT_EQ(rejected.status, 429) << rejected.body;
  EXPECT_NE(rejected.body.find("resource exhausted"), std::string::npos) << rejected.body;
  EXPECT_EQ(pending.count(), 1u);

  pending.respond_to_all();
  EXPECT_EQ(waiting.read_response().status, 200);
  EXPECT_EQ(used(server, options), 0u);
}

TEST(HttpBudgetTest, ReadAheadIsChargedAndConnectionIsClosedOverBudget) {
  const ServerOptions options = with_budget(20'000, 100'000'000);
  HttpServer server(options);
  PendingExchanges pending(server);
  RawClient client = server.client();
  ASSERT_TRUE(client.send(post(0, 0)));
  ASSERT_TRUE(wait_until([&] { return pending.count() == 1; }));
  ASSERT_TRUE(client.send(std::string(10'000, 'x')));
  EXPECT_TRUE(wait_until([&] { return used(server, options) == 10'000; }));
  ASSERT_TRUE(client.send(std::string(15'000, 'x')));
  EXPECT_TRUE(wait_until([&] { return server.connection_count() == 0; }));
  EXPECT_EQ(used(server, options), 0u);
}

TEST(HttpBudgetTest, RequestsReceivedWithTheFirstAreCharged) {
  const ServerOptions options = with_budget(20'000, 100'000'000);
  HttpServer server(options);
  PendingExchanges pending(server);
  RawClient client = server.client();
  ASSERT_TRUE(client.send(post(0, 0) + std::string(10'000, 'x')));
  EXPECT_TRUE(wait_until([&] { return used(server, options) == 10'000; }));
  RawClient greedy = server.client();
  ASSERT_TRUE(greedy.send(post(0, 0) + std::string(15'000, 'x')));
  EXPECT_TRUE(wait_until([&] { return server.connection_count() == 1; }));
  EXPECT_EQ(used(server, options), 10'000u);
}

// The client always has further requests queued after the current one.
TEST(HttpBudgetTest, ServedRequestsAreNotChargedAsReadAhead) {
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
  for (int i = 0; i < 500; ++i) ASSERT_EQ(client.read_response().status, 200) << i;
  EXPECT_TRUE(wait_until([&] { return used(server, options) == 0; }));
}

std::string long_head(std::size_t bytes) {
  return "GET /x HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(bytes, 'x');
}

TEST(HttpBudgetTest, IncompleteHeadIsCharged) {
  const ServerOptions options = with_budget(40'000, 100'000'000);
  HttpServer server(options);
  server.route("/x", [](const ExchangePtr& exchange) { exchange->respond(Response::text(200, "x")); });
  RawClient first = server.client();
  ASSERT_TRUE(first.send(long_head(25'000)));
  EXPECT_TRUE(wait_until([&] { return used(server, options) >= 25'000; }));
  const auto rejected = server.client().request(long_head(25'000));
  EXPECT_EQ(rejected.status, 429);
  EXPECT_NE(rejected.body.find("max_client_buffer_bytes (40000 bytes)"), std::string::npos) << rejected.body;
  EXPECT_EQ(first.request("\r\n\r\n").status, 200);
  EXPECT_EQ(used(server, options), 0u);
}

// A parsed field needs more memory than its bytes in the request.
TEST(HttpBudgetTest, MemoryOfHeadIsChargedUntilResponse) {
  const ServerOptions options = with_budget(1'000'000, 100'000'000);
  HttpServer server(options);
  PendingExchanges pending(server);
  std::string head = "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n";
  for (int i = 0; i < 5'000; ++i) head += "a:\r\n";
  RawClient client = server.client();
  ASSERT_TRUE(client.send(head + "\r\nx"));
  EXPECT_TRUE(wait_until([&] { return used(server, options) > 5'000 * 16; }));
  ASSERT_TRUE(client.send("x"));
  ASSERT_TRUE(wait_until([&] { return pending.count() == 1; }));
  EXPECT_GT(used(server, options), 5'000u * 16);
  pending.respond_to_all();
  EXPECT_EQ(client.read_response().status, 200);
  EXPECT_EQ(used(server, options), 0u);
}

std::string many_fields() {
  std::string head = "GET /x HTTP/1.1\r\nHost: localhost\r\n";
  for (int i = 0; i < 5'000; ++i) head += "a:\r\n";
  return head;
}

TEST(HttpBudgetTest, IdleConnectionsKeepNoRequestMemory) {
  const ServerOptions options = with_budget(1'000'000, 100'000'000);
  HttpServer server(options);
  server.route("/x", [](const ExchangePtr& exchange) { exchange->respond(Response::text(200, "x")); });
  const std::string request = many_fields() + "\r\n";
  std::vector<RawClient> clients;
  for (int i = 0; i < 100; ++i) clients.push_back(server.client());
  for (RawClient& client : clients) ASSERT_EQ(client.request(post(0, 0)).status, 200);
  const std::size_t before = test::allocated_bytes();
  // Two requests per connection: the second one can reuse memory that the connection or the server kept after
  // the first.
  for (RawClient& client : clients) {
    ASSERT_EQ(client.request(request).status, 200);
    ASSERT_EQ(client.request(request + post(0, 0)).status, 200);
    ASSERT_EQ(client.read_response().status, 200);
  }
  EXPECT_LT(test::allocated_bytes(), before + clients.size() * 8'000 + 1'000'000);
}

TEST(HttpBudgetTest, RejectedRequestKeepsNoMemoryWhileConnectionLingers) {
  const ServerOptions options = with_budget(1'000'000, 100'000'000);
  HttpServer server(options);
  std::vector<RawClient> clients;
  for (int i = 0; i < 100; ++i) clients.push_back(server.client());
  EXPECT_TRUE(wait_until([&] { return server.connection_count() == clients.size(); }));
  const std::size_t before = test::allocated_bytes();
  for (RawClient& client : clients) ASSERT_EQ(client.request(many_fields() + "no field\r\n\r\n").status, 400);
  EXPECT_LT(test::allocated_bytes(), before + clients.size() * 8'000 + 1'000'000);
}

TEST(HttpBudgetTest, RequestOfDisconnectedClientIsNoLongerCharged) {
  const ServerOptions options = with_budget(1'000'000, 100'000'000);
  HttpServer server(options);
  PendingExchanges pending(server);
  {
    RawClient disconnected = server.client();
    ASSERT_TRUE(disconnected.send(post(900'000, 900'000)));
    ASSERT_TRUE(wait_until([&] { return pending.count() == 1; }));
  }
  EXPECT_TRUE(wait_until([&] { return used(server, options) == 0; }));
}

TEST(HttpBudgetTest, ResponseIsReplacedBy429WhenUnreadResponsesFillBudget) {
  const ServerOptions options = with_budget(40'000'000, 100'000'000);
  HttpServer server(options);
  const Bytes large = Bytes::adopt(std::string(30'000'000, 'x'));
  server.route("/x", [large](const ExchangePtr& exchange) {
    Response response(200);
    response.body.push_back(large);
    exchange->respond(std::move(response));
  });
  RawClient non_reading = server.client();
  ASSERT_TRUE(non_reading.send(post(0, 0)));
  ASSERT_TRUE(wait_until([&] { return used(server, options) > 10'000'000; }));
  const auto rejected = server.client().request(post(0, 0));
  EXPECT_EQ(rejected.status, 429);
  EXPECT_NE(rejected.body.find("max_client_buffer_bytes (40000000 bytes)"), std::string::npos)
      << rejected.body.substr(0, 200);
  // Responses that are read are no longer charged.
  EXPECT_EQ(non_reading.read_response().body.size(), large.size());
  EXPECT_TRUE(wait_until([&] { return used(server, options) == 0; }));
}

TEST(HttpBudgetTest, StreamIsClosedWhenClientDoesNotReadAndBudgetIsFull) {
  ServerOptions options = with_budget(10'000'000, 100'000'000);
  options.max_stream_backlog_bytes = 1'000'000'000;
  HttpServer server(options);
  ExchangePtr stream;
  server.route("/x", [&](ExchangePtr exchange) { stream = std::move(exchange); });
  RawClient non_reading = server.client();
  ASSERT_TRUE(non_reading.send(post(0, 0)));
  ASSERT_TRUE(wait_until([&] { return server.thread().run([&] { return stream != nullptr; }); }));
  server.thread().run([&] { stream->start(Response(200)); });
  const Bytes part = Bytes::adopt(std::string(1'000'000, 'x'));
  const bool closed = server.thread().run([&] {
    for (int i = 0; i < 60 && !stream->disconnected(); ++i) stream->write({part});
    return stream->disconnected();
  });
  EXPECT_TRUE(closed);
  server.thread().run([&] { stream.reset(); });
  EXPECT_TRUE(wait_until([&] { return used(server, options) == 0; }));
}

}  // namespace
}  // namespace fairlead::http
