// DirectExchange: which responses it receives itself, and which ones HttpClient::send() continues.
#include "http/client_direct.hpp"

#include "http/client_fixture.hpp"

namespace fairlead::http {
namespace {

TEST(RepeatedHeadTest, BodyIsReturnedIfOnlyContentLengthDiffers) {
  const std::string_view head = "HTTP/1.1 200 OK\r\nContent-Length: 12\r\nServer: s\r\n\r\n";
  RepeatedHead repeated;
  EXPECT_FALSE(repeated.body_of("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nServer: s\r\n\r\n"));
  repeated.assign(head, head.substr(head.find("12"), 2));
  EXPECT_EQ(repeated.body_of("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nServer: s\r\n\r\nabc"), "abc");
  EXPECT_EQ(repeated.body_of("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nServer: s\r\n\r\n"), "");
  for (const std::string_view other : {
           "HTTP/1.1 201 OK\r\nContent-Length: 3\r\nServer: s\r\n\r\nabc",
           "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nServer: t\r\n\r\nabc",
           "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nServer: s\r\nContent-Length: 3\r\n\r\nabc",
           "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nServer: s\r\n\r\nab",
           "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nServer: s\r\n\r\nabcd",
           "HTTP/1.1 200 OK\r\nContent-Length: -3\r\nServer: s\r\n\r\nabc",
           "HTTP/1.1 200 OK\r\nContent-Length: \r\nServer: s\r\n\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551619\r\nServer: s\r\n\r\nabc",
           "HTTP/1.1 200 OK\r\nContent-Length: 3",
           "HTTP/1.1 200 OK\r\n",
           "",
       })
    EXPECT_FALSE(repeated.body_of(other)) << other;
}

class TestExchange final : public DirectExchange {
 public:
  void on_readable() override {
    std::string_view received;
    outcome = receive(max_bytes, received);
    body = received;
  }
  std::optional<Received> outcome;
  std::string body;
  std::size_t max_bytes = 100;
};

class DirectExchangeTest : public HttpClientTest {
 public:
  bool start(TestExchange& exchange, const ScriptServer& server, const std::string& body) {
    ClientRequest request("POST", Url::parse(server.url()).value());
    std::string fields;
    EXPECT_TRUE(client->append_fields(fields, request));
    fields.resize(fields.size() - 2);  // the line end
    const std::vector<Bytes> parts{Bytes::copy_of(body)};
    return exchange.start(*client, request.url, fields, parts);
  }
  DirectExchange::Received outcome_of(TestExchange& exchange) {
    EXPECT_TRUE(loop.block_on(test::eventually(
        loop, [&] { return exchange.outcome && exchange.outcome != DirectExchange::Received::nothing; })));
    return exchange.outcome.value_or(DirectExchange::Received::nothing);
  }
  DirectExchange::Received exchange(const ScriptServer& server, const std::string& body) {
    TestExchange exchange;
    EXPECT_TRUE(start(exchange, server, body));
    return outcome_of(exchange);
  }
};

using Received = DirectExchange::Received;

TEST_F(DirectExchangeTest, JsonWithRepeatedHeadIsReceivedOnIdleConnection) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) { reply.json(200, request.body); });
  create_client();
  TestExchange first;
  EXPECT_FALSE(start(first, server, "no idle connection"));
  EXPECT_FALSE(first.in_progress());
  EXPECT_TRUE(get(server.url(), "POST", "[0]"));
  EXPECT_TRUE(start(first, server, "[1]"));
  EXPECT_EQ(client->idle_count(), 0U);
  EXPECT_TRUE(first.in_progress() && first.request_written());
  EXPECT_EQ(outcome_of(first), Received::anything_else);  // the head is not known yet
  ClientRequest rest("POST", Url::parse(server.url()).value());
  rest.begun = first.extract();
  EXPECT_EQ(loop.block_on(fetch(std::move(rest)))->body, "[1]");
  TestExchange second;
  EXPECT_TRUE(start(second, server, "[1,2,3,4]"));
  EXPECT_EQ(outcome_of(second), Received::json);
  EXPECT_EQ(second.body, "[1,2,3,4]");
  EXPECT_FALSE(second.in_progress());
  EXPECT_EQ(client->idle_count(), 1U);
  TestExchange large;
  large.max_bytes = 3;
  EXPECT_TRUE(start(large, server, "[12]"));
  EXPECT_EQ(outcome_of(large), Received::anything_else);
  EXPECT_EQ(server.connection_count(), 1);
  EXPECT_EQ(server.requests().size(), 4U);
  for (const ReceivedRequest& request : server.requests())
    EXPECT_EQ(request.headers.get("Content-Length"), std::to_string(request.body.size()));
}

TEST_F(DirectExchangeTest, OtherResponsesAreNotReceived) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    const std::string_view text = request.body;
    if (text == "plain") return reply.respond(200, "text/plain", "1");
    if (text == "error") return reply.json(500, "1");
    if (text == "encoded") return reply.json(200, "1", "Content-Encoding: gzip\r\n");
    if (text == "closed") return reply.json(200, "1", "Connection: close\r\n");
    if (text == "interim") return reply.send("HTTP/1.1 100 Continue\r\n\r\n"), reply.json(200, "1");
    if (text == "trailing")
      return reply.send(
          "HTTP/1.1 200 Whatever\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n12");
    if (text == "malformed") return reply.send("HTTP/1.1 200\r\nContent-Length\r\n\r\n");
    if (text == "lost") return reply.disconnect();
    reply.json(200, "1");
  });
  for (const char* const kind :
       {"plain", "error", "encoded", "closed", "interim", "trailing", "malformed", "lost"}) {
    create_client();
    for (int i = 0; i < 2; ++i) {  // such a head is not remembered either
      EXPECT_TRUE(get(server.url(), "POST", "json"));
      EXPECT_EQ(exchange(server, kind), Received::anything_else) << kind;
    }
    client->close();
  }
}

TEST_F(DirectExchangeTest, RequestOnLostConnectionIsRetriedBySend) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    if (request.connection == 1 && request.has("2")) return reply.disconnect();
    reply.json(200, request.body);
  });
  EXPECT_TRUE(get(server.url(), "POST", "1"));
  TestExchange direct;
  EXPECT_TRUE(start(direct, server, "2"));
  EXPECT_EQ(outcome_of(direct), Received::anything_else);
  ClientRequest rest("POST", Url::parse(server.url()).value());
  rest.body.push_back(Bytes::copy_of("2"));
  rest.begun = direct.extract();
  EXPECT_EQ(loop.block_on(fetch(std::move(rest)))->body, "2");
  EXPECT_EQ(server.requests("2").size(), 2U);
  EXPECT_EQ(server.connection_count(), 2);
}

TEST_F(DirectExchangeTest, ExchangeCountsAgainstMaxExchangesUntilItEnds) {
  std::atomic<bool> closed = false;
  ScriptServer server([&](const ReceivedRequest& request, Reply& reply) {
    if (request.body == "1") return reply.json(200, "1");
    closed = reply.wait_for_client_close();
  });
  options.max_exchanges = 1;
  EXPECT_TRUE(get(server.url(), "POST", "1"));
  {
    TestExchange waiting;
    EXPECT_TRUE(start(waiting, server, "2"));
    EXPECT_EQ(get(server.url(), "POST", "1").error().kind(), ErrorKind::resource_exhausted);
    TestExchange other;
    EXPECT_FALSE(start(other, server, "3"));
  }
  EXPECT_TRUE(loop.block_on(test::eventually(loop, [&] { return closed.load(); })));
  EXPECT_TRUE(get(server.url(), "POST", "1"));
}

TEST_F(DirectExchangeTest, IsNotSupportedWithAuthorizationOrTimeout) {
  create_client();
  EXPECT_TRUE(DirectExchange::supports(*client));
  options.response_timeout = std::chrono::milliseconds(1);
  create_client();
  EXPECT_FALSE(DirectExchange::supports(*client));
  options.response_timeout = {};
  options.headers = Headers{{"content-length", "1"}};
  create_client();
  EXPECT_FALSE(DirectExchange::supports(*client));
  options.headers = {};
  options.authorization.on_challenge = [](int, Headers) -> Task<Result<bool>> { co_return false; };
  create_client();
  EXPECT_FALSE(DirectExchange::supports(*client));
}

}  // namespace
}  // namespace fairlead::http
